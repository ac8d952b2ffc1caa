// The command line: one binary, its commands and their exit codes.
#pragma once

namespace holdfast {

// Runs one command; returns the process's exit code.
int run_command_line(int argc, char** argv);

}  // namespace holdfast

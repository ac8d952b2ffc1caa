// Removing a directory with a great many files.
#pragma once

#include <string>

namespace holdfast {

// With all that is in it; symlinks are not followed. Several files at a time: on a file system that is mounted with
// `discard`, each one waits for the device. What cannot be removed stays.
void remove_tree(const std::string& path);

}  // namespace holdfast

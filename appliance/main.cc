#include "appliance/command_line.h"

int main(int argc, char** argv) {
  return holdfast::run_command_line(argc, argv);
}

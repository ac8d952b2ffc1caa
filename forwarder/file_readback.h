// How certification learns what a directory of a file target holds.
#pragma once

#include <memory>

#include "forwarder/file_target.h"
#include "forwarder/readback.h"

namespace holdfast {

std::unique_ptr<Readback> make_file_readback(OpenDirectory open, FileTargetOptions target);

}  // namespace holdfast

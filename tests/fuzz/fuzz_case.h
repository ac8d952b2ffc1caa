// One fuzz case: any bytes go in, and a CHECK that fails, a sanitizer or a crash says what is wrong. libFuzzer calls it
// under the `fuzz` preset; in every other build replay_main.cc calls it with the corpus and with what a corpus turns
// into when it is damaged.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

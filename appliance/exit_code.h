// How a program of ours ends (README, "Operate it").
#pragma once

namespace holdfast {

inline constexpr int kExitGood = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;       // or configuration
inline constexpr int kExitTemporary = 75;  // sysexits.h, EX_TEMPFAIL

}  // namespace holdfast

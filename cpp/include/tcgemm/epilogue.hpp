// The epilogues: what is done to an accumulator before it is stored. One list; a kernel family
// instantiates every entry without a change to its main loop.
#pragma once

#include <array>
#include <cstdint>

namespace tcgemm {

// linear: D = alpha * acc + beta * C, computed at accumulator precision, rounded once to D's dtype.
#define TCGEMM_EPILOGUES(ROW) ROW(linear)

#define TCGEMM_VALUE(id) id,
#define TCGEMM_NAME(id) #id,
enum class Epilogue : std::uint8_t { TCGEMM_EPILOGUES(TCGEMM_VALUE) };
inline constexpr std::array kEpilogueNames = {TCGEMM_EPILOGUES(TCGEMM_NAME)};
#undef TCGEMM_VALUE
#undef TCGEMM_NAME

constexpr const char* name(Epilogue e) { return kEpilogueNames[static_cast<std::size_t>(e)]; }

}  // namespace tcgemm

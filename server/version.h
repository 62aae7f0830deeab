#pragma once

namespace switchyard {

// The version in CMakeLists.txt.
inline constexpr char kServerVersion[] = SWITCHYARD_VERSION;

}  // namespace switchyard

#pragma once

#include <string_view>

namespace switchyard {

// dashboard.html, as the build found it.
extern const std::string_view kDashboardHtml;

}  // namespace switchyard

# cmake -DINPUT=FILE -DOUTPUT=FILE.cc -P embed_dashboard.cmake: the file's bytes as kDashboardHtml.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE "${OUTPUT}" "#include \"server/http/dashboard.h\"
namespace switchyard {
namespace {
constexpr char kBytes[] = {${bytes}};
}  // namespace
const std::string_view kDashboardHtml(kBytes, sizeof(kBytes));
}  // namespace switchyard
")

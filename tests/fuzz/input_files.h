#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace switchyard {

// One input stands for several files, one after the other with this between them.
inline constexpr std::string_view kFileBoundary = "\n--file--\n";

std::vector<std::string_view> FilesOf(const uint8_t* data, size_t bytes);

// The folder that this process's inputs are written to, with nothing of the input before. The
// readers take paths, and how they open and map files is part of what is tried.
const TemporaryFolder& EmptyInputFolder();

// Writes the weights of a model folder: one file is model.safetensors; of several, the first is the
// index, and the others are the shards a, b, ...
void WriteWeights(const TemporaryFolder& folder, const std::vector<std::string_view>& files);

// For inputs that a failed expectation is about: stops the process, which the fuzzer reports.
void Expect(bool condition, const std::string& what);

}  // namespace switchyard

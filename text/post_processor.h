#pragma once

#include <optional>

#include "base/status.h"
#include "text/json_field.h"
#include "text/tokenizer_settings.h"

namespace switchyard {

// What the "post_processor" of a tokenizer.json says about the beginning-of-sequence token:
// TemplateProcessing may put one in front of the text. UNIMPLEMENTED, naming file and field, for
// templates that add anything else and for kinds other than TemplateProcessing, ByteLevel (which
// only concerns offsets) and sequences of them.
StatusOr<SequenceTokens> ReadPostProcessor(const std::optional<JsonField>& field);

}  // namespace switchyard

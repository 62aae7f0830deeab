#include "text/sentencepiece_model.h"

#include <array>
#include <cmath>
#include <functional>
#include <optional>

#include "text/byte_piece.h"
#include "text/utf8.h"
#include "text/wire_reader.h"

namespace switchyard {
namespace {

using Field = WireReader::Field;
using PieceType = SentencePieceModel::PieceType;
using Algorithm = SentencePieceModel::Algorithm;

// Calls `read` for every field of `message`; `what` names the message in complaints.
Status ForEachField(
    std::string_view message,
    const std::string& what,
    const std::function<Status(const Field&)>& read
) {
  WireReader reader(message);
  while (true) {
    StatusOr<std::optional<Field>> field = reader.Next();
    if (!field.ok()) {
      return WithContext(field.status(), what);
    }
    if (!*field) {
      return OkStatus();
    }
    RETURN_IF_ERROR(read(**field));
  }
}

// Field numbers below are those of the published sentencepiece_model.proto.
Status ReadPiece(const Field& message, const std::string& what, SentencePieceModel::Piece& piece) {
  return ForEachField(message.bytes, what, [&](const Field& field) {
    switch (field.number) {
      case 1:
        piece.text = field.bytes;
        return OkStatus();
      case 2:
        piece.score = field.Float();
        return OkStatus();
      case 3:
        if (field.varint < 1 || field.varint > 6) {
          return InvalidArgument(what, ".type is ", field.varint, "; known types are 1 to 6");
        }
        piece.type = static_cast<PieceType>(field.varint);
        return OkStatus();
      default:
        return OkStatus();
    }
  });
}

Status ReadTrainerSpec(const Field& message, const std::string& what, SentencePieceModel& model) {
  return ForEachField(message.bytes, what, [&](const Field& field) {
    switch (field.number) {
      case 3:
        if (field.varint != 1 && field.varint != 2) {
          return Unimplemented(
              what,
              ".model_type is ",
              field.varint,
              "; this server reads unigram (1) and BPE (2) models"
          );
        }
        model.algorithm = static_cast<Algorithm>(field.varint);
        return OkStatus();
      case 24:
        return field.varint == 0
                   ? OkStatus()
                   : Unimplemented(what, ".treat_whitespace_as_suffix is not supported");
      case 35:
        model.byte_fallback = field.varint != 0;
        return OkStatus();
      case 44:
        model.unknown_surface = field.bytes;
        return OkStatus();
      case 46:
        model.bos_piece = field.bytes;
        return OkStatus();
      case 47:
        model.eos_piece = field.bytes;
        return OkStatus();
      default:
        return OkStatus();
    }
  });
}

Status ReadNormalizerSpec(
    const Field& message, const std::string& what, SentencePieceModel& model
) {
  return ForEachField(message.bytes, what, [&](const Field& field) {
    switch (field.number) {
      case 2:
        model.character_map = field.bytes;
        return OkStatus();
      case 3:
        model.add_dummy_prefix = field.varint != 0;
        return OkStatus();
      case 4:
        model.remove_extra_whitespaces = field.varint != 0;
        return OkStatus();
      case 5:
        model.escape_whitespaces = field.varint != 0;
        return OkStatus();
      default:
        return OkStatus();
    }
  });
}

// Denormalization rules change decoded text; an empty set of them is what every trainer writes.
Status CheckDenormalizerSpec(const Field& message, const std::string& what) {
  return ForEachField(message.bytes, what, [&](const Field& field) {
    return field.number == 2 && !field.bytes.empty()
               ? Unimplemented(what, ".precompiled_charsmap is not supported")
               : OkStatus();
  });
}

Status CheckPiece(const SentencePieceModel::Piece& piece, const std::string& what) {
  if (piece.text.empty()) {
    return InvalidArgument(what, ".piece is empty");
  }
  if (FindInvalidUtf8(piece.text)) {
    return InvalidArgument(what, ".piece is not valid UTF-8");
  }
  if (!std::isfinite(piece.score)) {
    return InvalidArgument(what, ".score is ", piece.score, "; expected a finite number");
  }
  if (piece.type == PieceType::kUnused) {
    return Unimplemented(what, ".type is UNUSED, which is not supported");
  }
  return OkStatus();
}

Status CheckModel(const SentencePieceModel& model, const std::string& file_name) {
  if (FindInvalidUtf8(model.unknown_surface)) {
    return InvalidArgument(file_name, ": trainer_spec.unk_surface is not valid UTF-8");
  }
  std::array<bool, 256> has_byte{};
  int unknown_pieces = 0;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePieceModel::Piece& piece = model.pieces[id];
    const std::string what = Concat(file_name, ": pieces[", id, "]");
    RETURN_IF_ERROR(CheckPiece(piece, what));
    unknown_pieces += piece.type == PieceType::kUnknown ? 1 : 0;
    if (piece.type != PieceType::kByte) {
      continue;
    }
    const std::optional<uint8_t> byte = ParseBytePiece(piece.text);
    if (!byte || !model.byte_fallback) {
      return InvalidArgument(
          what,
          " is a byte piece spelled \"",
          piece.text,
          "\"; expected \"<0x00>\" to \"<0xFF>\"",
          " in a model with trainer_spec.byte_fallback"
      );
    }
    has_byte[*byte] = true;
  }
  if (unknown_pieces != 1) {
    return InvalidArgument(
        file_name, ": pieces has ", unknown_pieces, " unknown pieces; expected exactly 1"
    );
  }
  for (size_t byte = 0; model.byte_fallback && byte < has_byte.size(); ++byte) {
    if (!has_byte[byte]) {
      return InvalidArgument(
          file_name,
          ": pieces lacks \"",
          BytePiece(static_cast<uint8_t>(byte)),
          "\"; trainer_spec.byte_fallback needs a piece for each of the 256 bytes"
      );
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<SentencePieceModel> ParseSentencePieceModel(
    std::string_view contents, const std::string& file_name
) {
  SentencePieceModel model;
  RETURN_IF_ERROR(ForEachField(contents, file_name, [&](const Field& field) {
    if (field.number <= 5 && !field.is_bytes) {
      return DataLoss(
          file_name, ": field ", field.number, " is not a message; is this the right file?"
      );
    }
    switch (field.number) {
      case 1:
        return ReadPiece(
            field,
            Concat(file_name, ": pieces[", model.pieces.size(), "]"),
            model.pieces.emplace_back()
        );
      case 2:
        return ReadTrainerSpec(field, file_name + ": trainer_spec", model);
      case 3:
        return ReadNormalizerSpec(field, file_name + ": normalizer_spec", model);
      case 5:
        return CheckDenormalizerSpec(field, file_name + ": denormalizer_spec");
      default:
        return OkStatus();
    }
  }));
  RETURN_IF_ERROR(CheckModel(model, file_name));
  return model;
}

}  // namespace switchyard

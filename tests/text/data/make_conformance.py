#!/usr/bin/env python3
"""Makes the tokenizers in this folder and records what the original libraries do with them.

Needs the Debian packages python3-sentencepiece and bible-kjv, and the Python package tokenizers:

    python3 -m venv /tmp/tokenizers && /tmp/tokenizers/bin/pip install tokenizers
    PYTHONPATH=/usr/lib/python3/dist-packages /tmp/tokenizers/bin/python make_conformance.py

Each sub-folder gets a tokenizer.model or tokenizer.json and a conformance.json:
    libraries       name and version of what made it
    cases           text -> ids, user text only (no control tokens parsed)
    special_cases   text -> ids with special tokens parsed
    decode_cases    ids -> text
A case without "decoded" decodes to its own text. Running it again gives the same files for the same versions.
"""

import io
import json
import pathlib
import random
import subprocess

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent
PAIR_SEPARATOR = " "
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

WORDS = [
    "In the beginning God created the heaven and the earth.",
    "hello world", " leading", "trailing ", "  two  spaces  ", "don't we'll they've I'm he'd it's you're",
    "DON'T WE'LL THEY'VE", "don’t", "'s", "'ſ", "a'b'c", "''", "x=1;y==2", "3.14159e-10", "1234567890",
    "12 345,678.90", "٣٤٥٦", "Ⅷ ½ ² ①", "v1.2.3-rc4", "snake_case camelCase PascalCase", "a" * 300, "ab" * 100,
    "!?.,;:" * 5, "-" * 64, "...", "https://example.org/a?b=c&d=%20", "<html><body>&amp;</body></html>",
    '{"key": [1, 2, null]}', "\\n is not a newline", "for (int i = 0; i < n; ++i) {\n\treturn x;\n}\n",
]
SCRIPTS = [
    "你好，世界！", "日本語のテキストとカタカナ", "한국어 문장입니다", "中文English混排123", "مرحبا بالعالم",
    "السَّلامُ عَلَيْكُم", "שָׁלוֹם עוֹלָם", "สวัสดีชาวโลก", "नमस्ते दुनिया", "Привет, мир!", "Καλημέρα κόσμε",
    "ñandú façade naïve", "e\u0301a\u0300o\u0308", "Z\u0351\u036b\u0343a\u0321\u0321l\u0350g\u0309o\u033d", "ﬁﬂ ﬀ ﬃ", "Ａｂｃ１２３",
    "ｶﾞｷﾞ", "Å Å Å", "İıſß", "ĳ ǆ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "𐍈𐌰𐌿", "㍿ ㎏ ℃ №", "ΐ ΰ", "क्षि", "ກຂຄ", "ᚠᛇᚻ", "தமிழ்",
]
EMOJI = [
    "😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇯🇵🇺🇸", "👩🏿‍🚀 to the moon 🚀🚀", "❤️", "☺", "1️⃣2️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "😀😀😀😀 text 😀", "a😀b",
]
SPACES = [
    "", " ", "  ", "   ", " " * 17, " " * 128, "\n", "\n\n", "\n" * 20, "\t", "\t\t\t", "\t \t \n \n\t", "\r\n", "\r\n\r\n",
    " \n", "\n ", "a \n b", "a\n\n\nb", "a" + " " * 9 + "b", "a\tb", "    indented\n        more\n", "x\u00a0y",
    "\u2003em\u2003space", "\u3000全角\u3000", "a\u2028b\u2029c", "zero\u200bwidth", "\ufeffbom", "\u180emongolian",
    "\u1680ogham", "a\u0085b", "\u202f1\u202f000", "soft\u00adhyphen", "\u200d", "\u200e\u202eRTL\u202c", "a\u00a0\u00a0b", " \u3000 ",
    "▁", "▁▁", "a▁b", "▁ ▁", " ▁a", "Ġ", "ĠĠa Ċ",
]
CONTROLS = [
    "\x00", "a\x00b", "\x01\x02\x03", "\x07bell", "\x1b[31mred\x1b[0m", "\x7f", "\x80\x9f", "\ufffd", "\uffff", "\U0010ffff",
    "\ue000", "\x0b\x0c", "\x1c\x1d\x1e\x1f",
]
SPELLINGS = [
    "<s>", "</s>", "<unk>", "<0x0A>", "<0xE2><0x82>", "a</s>b", "</s></s>", "<|endoftext|>", "x<|endoftext|>y", "<s>hello</s>",
    "< s >", "<|endof", "<mask>", "  <mask>  x", "a <mask>b", "<<s>>", "<|tool|>call", "a <|tool|> b",
]
SPECIAL_TEXTS = SPELLINGS + [
    "<s>In the beginning</s> the earth", "a</s> b", "a </s>b", "</s>\n\n</s>", "<|endoftext|><|endoftext|>", "<s></s><s>", "   ",
    "one  <mask>   two", "\u3000<mask>\u00a0z", "<|tool|><|tool|>", "你好</s>世界", "a      b", "\t\tx", "<mask><mask>  <mask>",
]


def awkward_texts():
    texts = WORDS + SCRIPTS + EMOJI + SPACES + CONTROLS + SPELLINGS
    rng = random.Random(20240229)
    alphabet = [text for text in WORDS + SCRIPTS + EMOJI + SPACES + CONTROLS if 0 < len(text) < 40]
    for _ in range(70):
        joint = rng.choice(["", "", " ", "\n", "  ", "'", "-"])
        texts.append(joint.join(rng.choice(alphabet) for _ in range(rng.randint(2, 4))))
    code_points = [(0x20, 0x7F), (0xA0, 0x250), (0x300, 0x370), (0x5D0, 0x5EB), (0x4E00, 0x4F00), (0x1F600, 0x1F640), (0x2000, 0x2030)]
    for _ in range(50):
        ranges = [rng.choice(code_points) for _ in range(rng.randint(1, 24))]
        texts.append("".join(chr(rng.randrange(low, high)) for low, high in ranges))
    return list(dict.fromkeys(texts))


def training_lines():
    bible = subprocess.run(["bible", "gen1:1-20:18"], capture_output=True, check=True).stdout.decode()
    lines = [line.strip() for line in bible.splitlines() if line.strip()]
    return lines + (SCRIPTS + WORDS[:12]) * 3


def entry(text, ids, decoded):
    made = {"text": text, "ids": ids}
    if decoded != text:
        made["decoded"] = decoded
    return made


def random_ids(size, low_ids):
    """Sequences that no encoder would give; many byte tokens, so that characters come out broken."""
    rng = random.Random(size)
    for _ in range(80):
        yield [rng.randrange(low_ids if rng.random() < 0.6 else size) for _ in range(rng.randint(1, 10))]


def write(folder, library, cases, special_cases, decode_cases):
    text = {"libraries": library, "cases": cases, "special_cases": special_cases, "decode_cases": decode_cases}
    path = HERE / folder / "conformance.json"
    lines = json.dumps(text, ensure_ascii=False, separators=(",", ":")).replace('{"text"', '\n{"text"')
    path.write_text(lines.replace('{"ids"', '\n{"ids"') + "\n", encoding="utf-8")


def make_sentencepiece(folder, lines, user_defined=(), **options):
    (HERE / folder).mkdir(exist_ok=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, user_defined_symbols=list(user_defined),
        minloglevel=2, num_threads=1, self_test_sample_size=0, **options)
    (HERE / folder / "tokenizer.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    def case(text):
        ids = processor.encode(text)
        return entry(text, ids, processor.decode(ids))

    # The library always matches user defined pieces; plain user text is compared where there are none.
    plain = [text for text in awkward_texts() if not any(symbol in text for symbol in user_defined)]
    special = [text for text in SPECIAL_TEXTS if "<s>" not in text and "</s>" not in text] if user_defined else []
    decode = [{"ids": ids, "decoded": processor.decode(ids)} for ids in random_ids(processor.vocab_size(), 280)]
    library = {"sentencepiece": sentencepiece.__version__}
    write(folder, library, [case(text) for text in plain], [case(text) for text in special], decode)
    return processor


def write_hugging_face(folder, description):
    (HERE / folder).mkdir(exist_ok=True)
    text = json.dumps(description, ensure_ascii=False, separators=(",", ":"))
    (HERE / folder / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    tokenizer = Tokenizer.from_str(text)

    def case(text, parse_special):
        tokenizer.encode_special_tokens = not parse_special
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return entry(text, ids, tokenizer.decode(ids, skip_special_tokens=True))

    decode = [{"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=True)}
              for ids in random_ids(tokenizer.get_vocab_size(), 280)]
    library = {"tokenizers": tokenizers.__version__}
    write(folder, library, [case(text, False) for text in awkward_texts()],
          [case(text, True) for text in SPECIAL_TEXTS], decode)


def added(token_id, content, **flags):
    default = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": token_id, "content": content, **default, **flags}


def byte_level_description(lines):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=680, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    size = tokenizer.get_vocab_size()
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = [added(size, "<|endoftext|>")]
    # As in CodeGen: runs of white space that are ordinary tokens.
    blanks = [" " * n for n in range(12, 1, -1)] + ["\t" * n for n in range(4, 1, -1)]
    for i, blank in enumerate(blanks):
        description["added_tokens"].append(added(size + 1 + i, blank, special=False, normalized=True))
    next_id = size + 1 + len(blanks)
    description["added_tokens"].append(added(next_id, "<mask>", lstrip=True, rstrip=True))
    description["added_tokens"].append(added(next_id + 1, "<|tool|>", special=False, rstrip=True))
    return description


def with_merges_as(description, kind):
    merges = [merge if isinstance(merge, list) else merge.split(PAIR_SEPARATOR)
              for merge in description["model"]["merges"]]
    spelled = merges if kind == "pairs" else [PAIR_SEPARATOR.join(merge) for merge in merges]
    return {**description, "model": {**description["model"], "merges": spelled}}


def template(token, token_id):
    first = {"SpecialToken": {"id": token, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    second = {"Sequence": {"id": "B", "type_id": 1}}
    return {"type": "TemplateProcessing", "single": [first, text], "pair": [first, text, second],
            "special_tokens": {token: {"id": token, "ids": [token_id], "tokens": [token]}}}


def make_byte_level(lines):
    plain = byte_level_description(lines)
    write_hugging_face("byte_level", with_merges_as(plain, "strings"))

    bos_id = plain["added_tokens"][0]["id"]
    split = with_merges_as(plain, "pairs")
    split["added_tokens"] = plain["added_tokens"][:1]
    split["model"]["ignore_merges"] = True
    split["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": LLAMA3_PATTERN}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]}
    split["post_processor"] = {"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        template("<|endoftext|>", bos_id)]}
    write_hugging_face("byte_level_split", split)

    prefix = with_merges_as(plain, "strings")
    prefix["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]}
    write_hugging_face("byte_level_prefix", prefix)


def llama_model(processor):
    """The vocabulary of a SentencePiece BPE model, and as merges all ways to put its pieces together."""
    pieces = [processor.id_to_piece(i) for i in range(processor.vocab_size())]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    first_piece = next(i for i in range(len(pieces)) if not (processor.is_unknown(i) or processor.is_control(i)
                                                            or processor.is_byte(i)))
    merges = []
    for piece in pieces[first_piece:]:  # in the order of falling scores
        splits = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        merges += [pair for pair in splits if pair[0] in vocab and pair[1] in vocab]
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
            "vocab": vocab, "merges": [list(pair) for pair in merges]}


def make_llama(processor):
    model = llama_model(processor)
    size = processor.vocab_size()
    base = {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")],
            "normalizer": {"type": "Sequence", "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
            "pre_tokenizer": None,
            "post_processor": template("<s>", 1),
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            "model": model}
    extra = [added(size, "<mask>", lstrip=True), added(size + 1, "<|tool|>", special=False, normalized=True)]
    normalizer = {**base, "added_tokens": base["added_tokens"] + extra}
    write_hugging_face("llama_normalizer", with_merges_as(normalizer, "strings"))

    always = {**base, "normalizer": None,
              "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
              "decoder": {"type": "Sequence", "decoders": [
                  {"type": "ByteFallback"},
                  {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]}}
    write_hugging_face("llama_metaspace", with_merges_as(always, "strings"))

    first = {**base, "normalizer": None, "post_processor": None,
             "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}}
    # Without byte fallback and without fusing, each unknown character is an <unk> of its own.
    first["model"] = {**model, "byte_fallback": False, "fuse_unk": False}
    first["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    write_hugging_face("llama_metaspace_first", with_merges_as(first, "pairs"))


def main():
    lines = training_lines()
    llama_like = make_sentencepiece(
        "sentencepiece_bpe", lines, model_type="bpe", vocab_size=800, byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.995)
    make_sentencepiece("sentencepiece_nmt_nfkc", lines, model_type="bpe", vocab_size=520, character_coverage=0.98)
    make_sentencepiece(
        "sentencepiece_unigram", lines, user_defined=["<|tool|>", "<mask>", "<|endoftext|>"], model_type="unigram",
        vocab_size=600, byte_fallback=True, normalization_rule_name="identity", character_coverage=0.98)
    make_byte_level(lines)
    make_llama(llama_like)


if __name__ == "__main__":
    main()

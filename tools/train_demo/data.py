"""The text, its split into training and held-out chapters, the tokenizer, and training windows."""

import re
import subprocess

import numpy as np
import sentencepiece
import torch

WHOLE_TEXT = "Genesis1:1-Revelation22:21"
HELD_OUT_EVERY = 40  # one chapter in 40 is held out: 30 of 1189, from 26 of the 66 books
HELD_OUT_FIRST = 19
UNKNOWN_ID, BOS_ID, EOS_ID = 0, 1, 2


def read_chapters():
    """Runs Debian's `bible` (package bible-kjv). Returns [(chapter reference, text)] in book order.

    `bible -f` prints one verse a line, as "Ge1:3 And God said, ...". The references are dropped and
    a chapter's verses joined with spaces, so that the model sees prose rather than a numbered list.
    """
    listing = subprocess.run(
        ["bible", "-f", WHOLE_TEXT], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    ).stdout
    chapters = {}
    for line in listing.splitlines():
        found = re.match(r"((?:\d)?[A-Za-z]+\d+):\d+ (.*)", line)
        if found:
            chapters.setdefault(found.group(1), []).append(found.group(2).strip())
    if len(chapters) != 1189:
        raise SystemExit(f"expected 1189 chapters from `bible -f {WHOLE_TEXT}`, found {len(chapters)}")
    return [(reference, " ".join(verses)) for reference, verses in chapters.items()]


def split_chapters(chapters):
    """Returns (training text, held-out text, held-out references); a chapter is one line of text."""
    is_held_out = [index % HELD_OUT_EVERY == HELD_OUT_FIRST for index in range(len(chapters))]
    joined = lambda held_out: "".join(
        text + "\n" for (_, text), flag in zip(chapters, is_held_out) if flag == held_out
    )
    references = [reference for (reference, _), flag in zip(chapters, is_held_out) if flag]
    return joined(False), joined(True), references


def train_tokenizer(training_text, pieces, model_path):
    """SentencePiece BPE in the manner of the Llama family: text is taken as it is (no normalisation),
    spaces are kept, and what no piece covers, such as the end of a line, becomes byte pieces."""
    # The trainer reads lines; a whole chapter is too long for one, so it gets sentences.
    sentences = re.sub(r"(?<=[.?!]) ", "\n", training_text).splitlines()
    with open(model_path, "wb") as model_file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model_file,
            model_type="bpe",
            vocab_size=pieces,
            byte_fallback=True,
            character_coverage=1.0,
            split_digits=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            unk_id=UNKNOWN_ID,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            pad_id=-1,
            minloglevel=2,
        )


def tokenize(text, model_path):
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(model_path))
    return torch.tensor(tokenizer.encode(text), dtype=torch.int64)


class Windows:
    """Random training windows. add_bos: input is [BOS, t[0 .. context-2]] with targets t[0 .. context-1];
    otherwise the token before the window leads, as in an endless stream."""

    def __init__(self, tokens, context, add_bos, seed):
        self.tokens, self.context, self.add_bos = tokens, context, add_bos
        self.random = np.random.default_rng(seed)
        self.offsets = []

    def batch(self, windows):
        rows = torch.stack(
            [self.tokens[start : start + self.context + 1] for start in self._starts(windows)]
        )
        inputs, targets = rows[:, :-1].clone(), rows[:, 1:]
        if self.add_bos:
            inputs[:, 0] = BOS_ID
        return inputs, targets

    def _starts(self, count):
        # Epochs rather than independent draws: every token is then seen equally often. Each epoch
        # shifts the grid, so that windows do not begin at the same words again.
        while len(self.offsets) < count:
            shift = int(self.random.integers(self.context))
            grid = np.arange(shift, len(self.tokens) - self.context, self.context)
            self.offsets += self.random.permutation(grid).tolist()
        taken, self.offsets = self.offsets[:count], self.offsets[count:]
        return taken


def evaluation_windows(tokens, context, add_bos):
    """Yields (input, target) rows that predict each held-out token exactly once.

    Chunks of `context` targets; each chunk's input is [lead, chunk without its last token], where the
    lead is BOS, or, for a model without BOS, the token before the chunk (token 0 then only leads)."""
    first = 0 if add_bos else 1
    for start in range(first, len(tokens), context):
        target = tokens[start : start + context]
        lead = torch.tensor([BOS_ID]) if add_bos else tokens[start - 1 : start]
        yield torch.cat([lead, target[:-1]]), target

"""The model card, README.md of a model folder."""

KIND_TEXT = {
    "moa": (
        "mixture-of-attention (MoA) language model in the JetMoE layout",
        "Experts hold the query and output projections of the attention, all experts share one set of keys and "
        "values, and the feed-forward layer is a mixture of gated (SwiGLU) experts. RMS norms, rotary positions, "
        "the output head is the embedding. `<s>` (id 1) goes before every text; `</s>` was never seen in training, "
        "so a completion ends at its token limit.",
    ),
    "switchhead": (
        "SwitchHead language model in the layout of the SwitchHead training code (SwitchAll)",
        "Every attention head chooses among experts of its value and output projections, and the feed-forward "
        "layer is a sigma-MoE. Layer norms, rotary positions on half of the channels, an output head of its own. "
        "Neither `<s>` nor `</s>` is added to a text, so a completion ends at its token limit.",
    ),
}


def write_card(folder, model, checkpoint, evaluation, held_out_references, utilisation, samples):
    sections = [
        what_it_is(folder, model),
        quality(model, evaluation),
        sample_section(samples),
        data_section(held_out_references),
        training_section(checkpoint),
        utilisation_section(model, utilisation),
        again_section(model, checkpoint),
        LIMITS,
    ]
    (folder / "README.md").write_text("\n\n".join(sections) + "\n")


def what_it_is(folder, model):
    c = model.config
    name, text = KIND_TEXT[c.kind]
    total, active = model.parameter_counts()
    head_word = "shared key/value heads" if c.kind == "moa" else "heads"
    per_head = "" if c.kind == "moa" else " of each head"
    rows = [
        ("parameters", f"{total:,}"),
        ("of them active for a token", f"{active:,}"),
        ("layers", c.layers),
        ("width", c.dim),
        ("attention", f"{c.heads} {head_word} of {c.head_dim}"),
        (f"attention experts{per_head}", f"{c.attention_experts}, {c.attention_chosen} chosen"),
        (
            "feed-forward experts",
            f"{c.feed_forward_experts} of width {c.feed_forward_hidden}, {c.feed_forward_chosen} chosen",
        ),
        ("vocabulary", f"{c.vocabulary} pieces, SentencePiece BPE with byte fallback"),
        ("context", f"{c.context_tokens} tokens"),
        ("stored as", "bfloat16"),
    ]
    table = "\n".join(["| | |", "|---|---|"] + [f"| {label} | {value} |" for label, value in rows])
    return (
        f"# {folder.resolve().name}\n\nA small {name}, trained from nothing on the King James Bible. It exists to "
        f"show the server a real model of this family that fits into a repository.\n\n{text}\n\n{table}"
    )


def quality(model, evaluation):
    return (
        "## Quality\n\n"
        "| held-out text | |\n|---|---|\n"
        f"| perplexity of a token | {evaluation['perplexity']:.2f} |\n"
        f"| bits per byte | {evaluation['bits_per_byte']:.3f} |\n"
        f"| tokens predicted | {evaluation['tokens']:,} |\n\n"
        "Measured in float32 with the stored weights; `evaluation.json` has all digits. The tokens of the held-out "
        "text are cut into chunks of one context; the first of a chunk is predicted from "
        + ("`<s>`" if model.config.adds_bos else "the token before it")
        + ", each other one from the chunk up to it."
    )


def sample_section(samples):
    parts = [
        "## Completions\n\nTemperature 0.8, top-p 0.95, the first draw of each; the prompt is in bold."
    ]
    for prompt, completion in samples:
        parts.append(f"> **{prompt}**" + completion.rstrip().replace("\n", "\n>\n> ") + " …")
    return "\n\n".join(parts)


def data_section(held_out_references):
    return (
        "## Data and licence\n\n"
        "The text is that of the Debian packages `bible-kjv` and `bible-kjv-text`, printed by the command `bible`: "
        "the King James Version as running text, a chapter a line, without verse numbers. The copyright file of the "
        "package states that the copyright of this text has expired, the translation being of 1611, and that the "
        "data file of the retrieval system may be used, modified and distributed without restriction as long as its "
        "legend goes with it. The text is in the public domain nearly everywhere; in the United Kingdom the Crown "
        "keeps a privilege of printing it. The package's program has the GNU GPL 2 or later; nothing of it is here.\n\n"
        f"Held out of the training of model and tokenizer: {len(held_out_references)} of the 1189 chapters, every 40th, in "
        f"`../held_out.txt`: {', '.join(held_out_references)} (abbreviations of `bible`)."
    )


def training_section(checkpoint):
    log, flags, config = checkpoint["log"], checkpoint["flags"], checkpoint["config"]
    step_tokens = flags["windows"] * config["context_tokens"]
    seen = log["steps"] * step_tokens
    resumed = "".join(f" Stopped and resumed at step {step}." for step in log["resumed_at"])
    return (
        "## Training\n\n![perplexity over the steps](loss.png)\n\n"
        f"{log['steps']:,} steps of {step_tokens:,} tokens: {seen / 1e6:.1f} million tokens, "
        f"{seen / checkpoint['training_tokens']:.1f} passes over the text. {flags['threads']} thread of a server "
        f"processor with AVX512-BF16, {log['cpu_minutes']:.0f} minutes of processor time with the held-out "
        f"evaluations of the picture, {log['minutes']:.0f} minutes by the clock (other programs ran as well).{resumed}\n\n"
        f"AdamW, peak learning rate {flags['learning_rate']:g} with warm-up and cosine decay, weight decay "
        f"{flags['weight_decay']:g}, dropout {config['dropout']:g}, gradient norm clipped to 1, load-balancing loss "
        f"times {flags['balance']:g}. Products in bfloat16; weights, routers and sums in float32. The last weights are "
        "the published ones; the held-out text chose nothing."
    )


def utilisation_section(model, utilisation):
    groups = model.config.heads if model.config.kind == "switchhead" else 1
    smallest = min(float(table.min()) for table in utilisation.values())
    columns = " | ".join(f"head {head}" for head in range(groups)) if groups > 1 else "experts"
    lines = [f"| layer and router | {columns} |", "|---|" + "---|" * groups]
    for name, table in utilisation.items():
        _, layer, router = name.split(".", 2)
        router = (
            router.replace(".router", "")
            .replace("_", " ")
            .replace(".", ", ")
            .replace("feed forward", "feed-forward")
        )
        cells = [" ".join(f"{100 * share:.0f}" for share in row) for row in table.tolist()]
        cells += [""] * (groups - len(cells))
        lines.append(f"| {layer} {router} | " + " | ".join(cells) + " |")
    return (
        "## Use of the experts\n\nOf the choices a router made on the held-out text, the share in percent that fell "
        f"on each expert. The least used one gets {100 * smallest:.1f} %.\n\n" + "\n".join(lines)
    )


def again_section(model, checkpoint):
    return (
        "## Train it again\n\n```\nsudo apt install bible-kjv python3-torch python3-sentencepiece python3-matplotlib\n"
        f"tools/train_demo/train.py --kind {model.config.kind} --output DIR --steps {checkpoint['log']['steps']}\n```\n\n"
        "trains as many steps as this run had; `--minutes 40` on an idle core makes more of them. "
        "`tools/train_demo/README.md` has the other flags and the exact definition of the figures above."
    )


LIMITS = (
    "## Limits\n\nIt knows the words and the grammar of this one book and nothing else: other English, digits and names from "
    "outside come out of byte pieces it never learned. It does not know facts, follows no instructions, loses the "
    "thread after a few clauses and now and then makes up a word. Many passages of the book occur twice in nearly the same words (Kings and "
    "Chronicles, the Gospels), so the held-out figures flatter it, and long stretches of a completion may be quotations."
)

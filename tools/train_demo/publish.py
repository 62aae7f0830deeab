"""Makes a model folder from a checkpoint: the model, its evaluation, samples, a picture, the model card."""

import math
from pathlib import Path

import sentencepiece
import torch
from torch.nn import functional

import data
import export
from card import write_card
from model import LanguageModel, ModelConfig

SAMPLE_PROMPTS = ["In the beginning", "And the king said unto the woman,", "Blessed is the man that"]
SAMPLE_TOKENS = 90
SAMPLE_TEMPERATURE, SAMPLE_TOP_P = 0.8, 0.95


def publish(checkpoint, folder, held_out_path, held_out_references):
    model = LanguageModel(ModelConfig(**checkpoint["config"]))
    model.load_state_dict(checkpoint["weights"])
    model.eval()
    export.write_model(model, folder)
    export.round_to_stored(model)

    evaluation = evaluate(model, folder, held_out_path)
    export.write_json(folder / "evaluation.json", evaluation)
    utilisation = {name: shares(router) for name, router in model.routers()}  # of the evaluation just done
    samples = [
        (prompt, complete(model, folder, prompt, seed)) for seed, prompt in enumerate(SAMPLE_PROMPTS)
    ]
    draw_loss(checkpoint["log"], folder / "loss.png")
    write_card(folder, model, checkpoint, evaluation, held_out_references, utilisation, samples)
    print(
        f"{folder}: held-out perplexity {evaluation['perplexity']:.3f}, "
        f"{evaluation['bits_per_byte']:.4f} bits per byte"
    )


@torch.no_grad()
def evaluate(model, folder, held_out_path):
    """Perplexity of the whole held-out file, every byte of it tokenised in one piece, in float32 with the
    stored weights; data.evaluation_windows says what is predicted from what."""
    text = Path(held_out_path).read_bytes().decode()
    tokens = data.tokenize(text, folder / "tokenizer.model")
    nats, predicted = 0.0, 0
    for inputs, targets in data.evaluation_windows(
        tokens, model.config.context_tokens, model.config.adds_bos
    ):
        losses = functional.cross_entropy(model(inputs[None]), targets, reduction="none")
        nats += losses.double().sum().item()
        predicted += len(targets)
    return {
        "held_out": "../" + Path(held_out_path).name,
        "tokens": predicted,
        "perplexity": math.exp(nats / predicted),
        "bits_per_byte": nats / math.log(2) / len(text.encode()),
    }


def shares(router):
    """Of all choices a router made, the share of each expert: [groups, experts], rows sum to 1."""
    return router.selection_counts / router.selection_counts.sum(-1, keepdim=True)


@torch.no_grad()
def complete(model, folder, prompt, seed):
    """Samples a continuation. Runs the whole window again for every token: a demo needs no cache."""
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    prompt_ids = tokenizer.encode(prompt)
    ids = list(prompt_ids)
    lead = [data.BOS_ID] if model.config.adds_bos else []
    generator = torch.Generator().manual_seed(seed)
    for _ in range(SAMPLE_TOKENS):
        logits = model(torch.tensor([lead + ids]))[-1] / SAMPLE_TEMPERATURE
        probability, order = logits.softmax(-1).sort(descending=True)
        # Keep the smallest set of tokens that holds SAMPLE_TOP_P of the probability.
        probability[probability.cumsum(-1) - probability >= SAMPLE_TOP_P] = 0
        ids.append(int(order[torch.multinomial(probability, 1, generator=generator)]))
    return tokenizer.decode(ids)[len(prompt) :]


def draw_loss(log, path):
    import matplotlib

    matplotlib.use("Agg")  # a file, no window
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.6), dpi=100)
    for key, label, style in (("train", "training, running mean", "-"), ("held_out", "held out", "o-")):
        steps, losses = zip(*log[key])
        axes.plot(
            steps, [math.exp(loss) for loss in losses], style, label=label, markersize=3, linewidth=1.2
        )
    axes.set_yscale("log")
    ticks = [10, 15, 20, 30, 50, 100, 200, 500]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(min(math.exp(loss) for key in ("train", "held_out") for _, loss in log[key]) * 0.9, 500)
    axes.set_xlabel("step")
    axes.set_ylabel("perplexity of a token")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)

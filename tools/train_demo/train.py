#!/usr/bin/env python3
"""Trains one demo model and writes its model folder. See README.md; `train.py --help` lists the flags."""

import argparse
import ctypes
import math
import time
from dataclasses import asdict
from pathlib import Path

import torch
from torch.nn import functional

import data
import publish
from model import LanguageModel, small_config

EVALUATIONS_PER_RUN = 20
CHECKPOINT = "checkpoint.pt"  # in the output folder while training


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=["moa", "switchhead"], required=True)
    parser.add_argument("--output", type=Path, required=True, help="model folder to write")
    parser.add_argument(
        "--minutes", type=float, default=40, help="wall-clock training time; the schedule fits itself to it"
    )
    parser.add_argument("--steps", type=int, help="train exactly so many steps instead")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--windows", type=int, default=8, help="windows of 512 tokens in a step")
    parser.add_argument("--learning-rate", type=float, default=2e-3, help="peak")
    parser.add_argument(
        "--weight-decay", type=float, default=0.1, help="of matrices, not of norms and biases"
    )
    parser.add_argument("--balance", type=float, default=0.01, help="weight of the load-balancing loss")
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--pieces", type=int, default=2048, help="vocabulary of a tokenizer trained now")
    parser.add_argument("--tokenizer", type=Path, help="use this tokenizer.model instead of training one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--float32", action="store_true", help="no bfloat16 products; for a CPU without AVX512-BF16"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from OUTPUT/checkpoint.pt of a stopped run; --minutes counts from its start",
    )
    parser.add_argument(
        "--publish-only", action="store_true", help="skip training, use OUTPUT/checkpoint.pt and keep it"
    )
    return parser.parse_args()


def keep_freed_memory():
    """Tells glibc's malloc to keep freed blocks. A step frees and asks again for the same gigabyte;
    with the defaults the page faults alone take longer than the arithmetic."""
    m_trim_threshold, m_top_pad, m_mmap_max, m_arena_max = -1, -2, -4, -8
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return  # not glibc: slower, not wrong
    mallopt(m_arena_max, 1)
    mallopt(m_mmap_max, 0)
    mallopt(m_trim_threshold, 2**31 - 1)
    mallopt(m_top_pad, 512 << 20)


def make_optimizer(model, flags):
    matrices = [tensor for tensor in model.parameters() if tensor.dim() >= 2]
    vectors = [tensor for tensor in model.parameters() if tensor.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": flags.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=flags.learning_rate, betas=(0.9, 0.95), foreach=True)


def schedule(progress):
    """Share of the peak learning rate: linear warm-up over the first 4 %, then a cosine down to 2 %."""
    warm_up = 0.04
    if progress < warm_up:
        return max(progress / warm_up, 0.01)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (progress - warm_up) / (1 - warm_up)))


@torch.no_grad()
def held_out_loss(model, tokens, bfloat16):
    """Mean negative log-likelihood of the held-out tokens, in nats (the exact one is in publish.py)."""
    model.eval()
    total = count = 0
    for inputs, targets in data.evaluation_windows(
        tokens, model.config.context_tokens, model.config.adds_bos
    ):
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            logits = model(inputs[None])
        total += functional.cross_entropy(logits.float(), targets, reduction="sum").item()
        count += len(targets)
    model.train()
    return total / count


def train_step(model, optimizer, batch, rate, flags):
    """Returns the cross-entropy loss of the batch, a float."""
    inputs, targets = batch
    with torch.autocast("cpu", torch.bfloat16, enabled=not flags.float32):
        logits = model(inputs)
    loss = functional.cross_entropy(logits.float(), targets.flatten())
    optimizer.zero_grad(set_to_none=True)
    (loss + flags.balance * model.balance_loss()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    return loss.item()


def new_log():
    return {
        "train": [],  # [[step, running mean of the loss]]
        "held_out": [],  # [[step, loss]]
        "steps": 0,
        "progress": 0.0,  # 0 .. 1 of the schedule
        "minutes": 0.0,
        "cpu_minutes": 0.0,
        "resumed_at": [],  # steps
    }


def train(model, windows, held_out_tokens, log, flags):
    """Trains the model and fills the log. Each twentieth of the way, the last included, saves a checkpoint."""
    optimizer = make_optimizer(model, flags)
    # A resumed run takes up its log; the optimizer starts anew, its memory spans some twenty steps only.
    step, progress, minutes_before, cpu_minutes_before = (
        log[key] for key in ("steps", "progress", "minutes", "cpu_minutes")
    )
    smooth_loss = log["train"][-1][1] if log["train"] else None
    started, started_cpu, first_step, first_progress = time.time(), time.process_time(), step, progress
    model.train()
    while progress < 1:
        loss = train_step(
            model, optimizer, windows.batch(flags.windows), flags.learning_rate * schedule(progress), flags
        )
        step += 1
        smooth_loss = loss if smooth_loss is None else 0.98 * smooth_loss + 0.02 * loss
        elapsed_min = (time.time() - started) / 60
        last_progress = progress
        if flags.steps:
            progress = step / flags.steps
        else:
            elapsed_share = elapsed_min / (flags.minutes - minutes_before)
            progress = first_progress + (1 - first_progress) * elapsed_share
        if step == 1 or step % 10 == 0:
            log["train"].append([step, smooth_loss])
            step_tokens = flags.windows * model.config.context_tokens
            tokens_per_s = (step - first_step) * step_tokens / (60 * elapsed_min)
            remaining_min = elapsed_min * (1 - progress) / (progress - first_progress)
            print(
                f"step {step}  {100 * progress:.1f} %  loss {smooth_loss:.3f}  {tokens_per_s:.0f} tokens/s  "
                f"{remaining_min:.1f} min to go",
                flush=True,
            )
        if int(progress * EVALUATIONS_PER_RUN) > int(last_progress * EVALUATIONS_PER_RUN):
            loss = held_out_loss(model, held_out_tokens, not flags.float32)
            log["held_out"].append([step, loss])
            print(f"step {step}  held-out perplexity {math.exp(loss):.2f}", flush=True)
            log.update(
                steps=step,
                progress=progress,
                minutes=minutes_before + (time.time() - started) / 60,
                cpu_minutes=cpu_minutes_before + (time.process_time() - started_cpu) / 60,
            )
            save_checkpoint(model, log, flags)


def save_checkpoint(model, log, flags):
    settings = {name: value for name, value in vars(flags).items() if not isinstance(value, Path)}
    checkpoint = {
        "config": asdict(model.config),
        "weights": model.state_dict(),
        "log": log,
        "flags": settings,
    }
    torch.save(checkpoint, flags.output / CHECKPOINT)


def main():
    flags = parse_flags()
    keep_freed_memory()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(flags.seed)
    flags.output.mkdir(parents=True, exist_ok=True)

    training_text, held_out_text, held_out_references = data.split_chapters(data.read_chapters())
    held_out_path = flags.output.parent / "held_out.txt"
    held_out_path.write_text(held_out_text)
    tokenizer_path = flags.output / "tokenizer.model"
    if flags.tokenizer:
        tokenizer_path.write_bytes(flags.tokenizer.read_bytes())
    elif not flags.publish_only and not flags.resume:
        data.train_tokenizer(training_text, flags.pieces, tokenizer_path)
    training_tokens = data.tokenize(training_text, tokenizer_path)

    if not flags.publish_only:
        held_out_tokens = data.tokenize(held_out_text, tokenizer_path)
        config = small_config(flags.kind)
        config.vocabulary, config.dropout = flags.pieces, flags.dropout
        model, log = LanguageModel(config), new_log()
        if flags.resume:
            checkpoint = torch.load(flags.output / CHECKPOINT)
            model.load_state_dict(checkpoint["weights"])
            log = checkpoint["log"]
            log["resumed_at"].append(log["steps"])
        print(
            f"{len(training_tokens)} training tokens, {len(held_out_tokens)} held-out tokens, "
            f"{model.parameter_counts()[0]} parameters",
            flush=True,
        )
        seed = flags.seed + log["steps"]  # a resumed run shall not begin with the same windows again
        windows = data.Windows(training_tokens, config.context_tokens, config.adds_bos, seed)
        train(model, windows, held_out_tokens, log, flags)

    checkpoint = torch.load(flags.output / CHECKPOINT)
    checkpoint["training_tokens"] = len(training_tokens)
    publish.publish(checkpoint, flags.output, held_out_path, held_out_references)
    if not flags.publish_only:
        (flags.output / CHECKPOINT).unlink()


if __name__ == "__main__":
    main()

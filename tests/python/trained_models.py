"""Trains small models of toolkits until they say a sentence, and runs the code of a page with them."""

import contextlib
import io
import os
import re

import numpy as np
import pages
import torch

SENTENCE = "MARK IS GOING"
SECONDS = 2


def noise():
    """Audio and its length."""
    return torch.from_numpy(np.random.default_rng(0).normal(0, 0.1, (1, SECONDS * 16000)).astype(np.float32)), torch.tensor([SECONDS * 16000])


def train(parameters, log_probs_of, targets, blank):
    """Trains until the sentence is much likelier than any other text. `log_probs_of`: audio, lengths -> log-probabilities [1, frames, columns], number of frames [1]."""
    optimizer = torch.optim.Adam(parameters, lr=0.02)
    for _ in range(500):
        log_probs, frames = log_probs_of(*noise())
        loss = torch.nn.functional.ctc_loss(log_probs.transpose(0, 1), torch.tensor([targets]), frames, torch.tensor([len(targets)]), blank=blank)
        if loss < 0.03:
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    raise AssertionError(f"the model does not learn: loss {float(loss)}")


def run_block(page, start, folder, names):
    """Runs the `py` block that has `start` in it, in a folder that also has the language model. Returns what it printed and what its comment says that it prints."""
    code = next(code for code in re.findall(r"^```py\n(.*?)^```$", (pages.ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL) if start in code)
    os.symlink(pages.ROOT / "examples" / "tutorial" / "lm.arpa.gz", folder / "lm.arpa.gz")
    audio, lengths = noise()
    printed, before = io.StringIO(), os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), {"audio": audio, "lengths": lengths, **names})  # noqa: S102
    finally:
        os.chdir(before)
    return printed.getvalue().strip().splitlines()[-1], re.search(r"print\(.*\) +# (.*)", code)[1]

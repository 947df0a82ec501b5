"""Sentences of the core in the words of the page: no keyword of Python, no name of a rule.

The command line has the same for its flags (``cli.options.in_flags``). What a sentence says stays as it is.
"""

from __future__ import annotations

import re

ASK_DECIMAL = ". Say which mark"
FIELDS = {  # the first word of an error names what was asked
    "alpha": "How often it may be false", "k": "How many qualified", "pool_size": "Pool size",
    "missing_labels": "Labels", "pos_label": "The values that mean qualified",
    "neg_label": "The values that mean qualified", "labels": "Labels",
    "unlabelled": "Scores of other candidates", "target": "The promise", "rule": "When it was fixed",
    "lowest_rate": "The lowest probability", "probability": "Probability", "pools": "Pool", "groups": "Group",
    "ids": "Candidate id", "scores": "Score", "start": "The list to begin with",
}  # fmt: skip
WORDS = (
    (r',? or drop these rows with on_bad_rows="drop"', ""),
    (r'on_bad_rows="drop" is for a few bad rows; check', "check"),
    (r'missing_labels="unqualified" keeps them as', "“Labels” below can keep them as"),
    (r"Name every other value that means qualified with pos_label=, and each that does not with neg_label=\.",
     "Rename those that mean the same, then choose all that mean qualified."),
    (r", ties=Hash\(ids\)", ""),
    (r" \(start=\)", " (the list to begin with)"),
    (r"; pass unlabelled=", ": choose a file of them"),
    (r"every row's probability= and lowest_rate=", "a column with every row's probability"),
    (r'averages in pools of a known size, shares kept, and numbers in every pool by rule="pac"',
     "averages in pools of a given size, and shares of all qualified that are kept"),
    (r'a PerPool promise of rule="exact" cannot be watched: its alpha is',
     "a promise about every pool cannot be watched: its chance of error is"),
    (r' Calibrate with rule="pac", which bounds the failure rate of this policy\.', ""),
    (r'\brule="exact"', "a promise fixed before looking"),
    (r"\be-value\b", "evidence"),
    (r"\bsimultaneous rule\b", "promise that was chosen after looking"),
)  # fmt: skip
_FIRST = re.compile(rf"^({'|'.join(FIELDS)}): ")


def sentence(text: str) -> str:
    """What the core says in the middle of a sentence, at the beginning of one."""
    return text[:1].upper() + text[1:]


def plainly(message: object) -> str:
    """A sentence as the page says it."""
    text, _, asks = str(message).partition(ASK_DECIMAL)
    if asks:
        text = f"{text}. Choose the decimal mark below."
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return _FIRST.sub(lambda match: f"{FIELDS[match[1]]}: ", text)

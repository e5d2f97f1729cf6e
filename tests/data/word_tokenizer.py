"""A tokenizer with the interface that corpora need: words by their checksum, a token for every other mark but
space.
"""

import hashlib
import os
import re
import time
import zlib

import numpy as np


class WordTokenizer:
    kind = "words"
    pad_token_id, unk_token_id, cls_token_id, sep_token_id, mask_token_id = range(5)
    bos_token_id = eos_token_id = None
    special_ids = np.arange(5)

    def __init__(self, vocab_size=1000, seconds=0.0, kill_at=None):
        self.vocab_size, self.seconds, self.kill_at = vocab_size, seconds, kill_at
        self.fingerprint = hashlib.sha256(f"words {vocab_size}".encode()).hexdigest()

    def encode_ids(self, texts):
        time.sleep(self.seconds)
        if self.kill_at is not None and any(self.kill_at in text for text in texts):
            os._exit(7)
        return [
            np.array([self.id_of(w) for w in re.findall(r"\w+|[^\w ]", text) if w != "\0"], np.int32)
            for text in texts
        ]

    def id_of(self, word):
        return 5 + zlib.crc32(word.encode()) % (self.vocab_size - 5)

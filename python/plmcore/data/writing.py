from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

import numpy as np

from plmcore._core import ArgumentError, FormatError
from plmcore.data import manifest, readers, workers
from plmcore.data.blocks import SIZE, Block, blocks, format_of
from plmcore.data.corpus import Corpus
from plmcore.data.encoding import Encoded, Encoder
from plmcore.files.text import Path, check_errors, files_in
from plmcore.files.whole import check_replaceable, named, open_own, remove, sync_folder

JOURNAL = "journal.jsonl"
COMMIT = 8  # blocks that a kill may cost
THREADS = 4  # beyond these, processes encode more
NAMES = (manifest.IDS, manifest.SENTENCES, manifest.DOCUMENTS, manifest.DOCUMENT_SENTENCES)
SPECIAL = ("pad", "unk", "cls", "sep", "mask", "bos", "eos")


def write_corpus(
    out: Path,
    inputs: Path | Iterable[Path],
    tokenizer: Any,
    *,
    documents: str = "blank",
    sentences: str = "rule",
    unwrap: bool = False,
    field: str = "text",
    errors: str = "strict",
    workers: int | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Corpus:
    """Tokenises files and folders into the corpus directory `out`, in `workers` threads or processes
    (default: one for each core, fewer processes for small files).

    documents: of text files, separated by blank lines ("blank"), one to a line ("line") or one to a file
        ("file").
    sentences: they end by the rule of plmcore.data.sentences ("rule"), with lines ("lines") or with documents
        ("document").
    unwrap: line breaks inside a document are read as spaces.
    field: the text in .jsonl, .csv, .tsv and .parquet files, where each record is a document.

    A run that was stopped goes on where it was when it is called again with the same arguments. Until it is
    complete everything lies in the folder .NAME.partial beside `out`. overwrite=True replaces a corpus or an
    unfinished one. The result does not depend on `workers`. `progress` is called with bytes read and their
    total.
    """
    for name, value, known in (
        ("documents", documents, ("blank", "line", "file")),
        ("sentences", sentences, ("rule", "lines", "document")),
    ):
        if value not in known:
            raise ArgumentError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    check_errors(errors)
    if workers is not None and workers < 1:
        raise ArgumentError(f"workers must be at least 1, got {workers}")
    out = pathlib.Path(out)
    _check_free(out, overwrite)
    files = files_in(inputs)
    if any(format_of(path) == ".parquet" for path in files):
        readers.parquet_library()  # is missed now, not after the other files
    encoder = Encoder(tokenizer, documents, sentences, unwrap, field, errors)
    with named(out), _Partial(out, files, encoder, overwrite) as partial:
        partial.fill(workers, progress)
        partial.finish(out)
    return Corpus.open(out, verify=False)


@contextlib.contextmanager
def _encoding(
    encoder: Encoder, files: list[pathlib.Path], count: int | None
) -> Iterator[Callable[[Iterable[Block]], Iterator[Encoded]]]:
    """The encoder over blocks, in `count` workers: threads where the tokenizer leaves Python's lock and they
    are few, since what remains in Python is shared; else processes.
    """
    threaded = getattr(encoder.tokenizer, "threaded", False)
    if count is None:
        cores = len(os.sched_getaffinity(0))
        count = min(cores, _worthwhile(files))
        if threaded and count <= THREADS:  # they cost nothing to start
            count = min(cores, THREADS)
    if threaded and count <= THREADS:
        yield lambda items: encoder.in_threads(items, count)
        return
    if count == 1:
        yield lambda items: map(encoder, items)
        return
    with workers.started(encoder, count) as over:
        yield over


def _worthwhile(files: list[pathlib.Path]) -> int:
    """As many processes as there are blocks: one takes as long to start as to tokenise a block."""
    size = sum(path.stat().st_size * (3 if path.suffix == ".gz" else 1) for path in files)  # about
    return max(1, size // SIZE)


def _check_free(out: pathlib.Path, overwrite: bool) -> None:
    check_replaceable(out, directory=True)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / manifest.FILE).exists():
        raise FileExistsError(f"'{out}' exists and is no corpus")
    if not overwrite:
        raise FileExistsError(f"'{out}' is a corpus already; overwrite replaces it")


def _source(files: list[pathlib.Path], encoder: Encoder) -> dict[str, Any]:
    """What a corpus is made of, as corpus.json keeps it."""
    options = {f.name: getattr(encoder, f.name) for f in dataclasses.fields(encoder) if f.name != "tokenizer"}
    return {"files": [[path.name, path.stat().st_size] for path in files], **options}


def _state(path: pathlib.Path) -> list[Any]:
    return [str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns]


def _described(tokenizer: Any) -> dict[str, Any]:
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id", None) for name in SPECIAL}
    return {
        "kind": getattr(tokenizer, "kind", None),
        "fingerprint": tokenizer.fingerprint,
        "special_ids": [int(i) for i in tokenizer.special_ids],
        **{name: None if id is None else int(id) for name, id in special.items()},
    }


def _sync(files: Iterable[IO[bytes]]) -> None:
    """Brings files to the disk, all at once: each waits for it, and it takes them together."""
    files = list(files)
    for file in files:
        file.flush()
    with ThreadPoolExecutor(len(files)) as threads:
        list(threads.map(os.fsync, files))


class _Partial:
    """A corpus that is being written: its files, and a journal of how long each was
    when it was last safe on the disk.
    """

    def __init__(self, out: pathlib.Path, files: list[pathlib.Path], encoder: Encoder, overwrite: bool):
        self.folder = out.absolute().with_name(f".{out.absolute().name}.partial")
        self.inputs, self.encoder, self.overwrite = files, encoder, overwrite
        self.source = _source(files, encoder)
        self.tokenizer = _described(encoder.tokenizer)
        self.vocab_size = int(encoder.tokenizer.vocab_size)
        job = [manifest.VERSION, self.source, self.tokenizer, self.vocab_size, [_state(p) for p in files]]
        self.job = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()
        self.blocks = self.tokens = self.sentences = self.closed = (
            0  # closed: sentences in complete documents
        )

    def __enter__(self) -> _Partial:
        self.folder.mkdir(parents=True, exist_ok=True)
        check_replaceable(self.folder, directory=True)
        with contextlib.ExitStack() as stack:
            self.journal = stack.enter_context(open_own(self.folder / JOURNAL, "a+b"))
            try:
                fcntl.flock(self.journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BlockingIOError(f"another process is writing '{self.folder}'") from None
            self.files = {name: stack.enter_context(open_own(self.folder / name, "a+b")) for name in NAMES}
            self.sums = {name: manifest.Checksums() for name in NAMES}
            self._resume()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        if not self.committed:  # nothing to go on from
            shutil.rmtree(self.folder, ignore_errors=True)

    def _entries(self, noted: bytes) -> list[dict[str, Any]]:
        try:
            entries = [json.loads(line) for line in noted.splitlines()]
            for entry in entries[1:]:
                sizes = [entry["blocks"], entry["closed"], *(entry["bytes"][name] for name in NAMES)]
                if not all(type(n) is int and n >= 0 for n in sizes):
                    raise ArgumentError("a size is no whole number")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FormatError(f"'{self.folder / JOURNAL}' is damaged; delete the folder") from None
        return entries

    def _resume(self) -> None:
        """Goes back to the last entry of the journal. A new journal begins with the job."""
        self.journal.seek(0)
        noted = self.journal.read()
        noted = noted[: noted.rfind(b"\n") + 1]  # the last entry may be cut short
        self.journal.truncate(len(noted))
        entries = self._entries(noted)
        if entries and entries[0] != {"job": self.job}:
            if len(entries) > 1 and not self.overwrite:
                raise FileExistsError(
                    f"'{self.folder}' holds an unfinished corpus of other files, another tokenizer or "
                    f"other options; repeat its command, delete it, or overwrite"
                )
            entries = []
        self.committed = len(entries) > 1
        state: dict[str, Any] = (
            entries[-1] if len(entries) > 1 else {"blocks": 0, "closed": 0, "bytes": dict.fromkeys(NAMES, 0)}
        )
        self.blocks, self.closed = state["blocks"], state["closed"]
        for name, file in self.files.items():
            if os.fstat(file.fileno()).st_size < state["bytes"][name]:
                raise FormatError(
                    f"'{self.folder / name}' is shorter than its journal says; delete the folder"
                )
            file.truncate(state["bytes"][name])
            file.seek(0)
            while data := file.read(manifest.BLOCK):
                self.sums[name].update(data)
        self.tokens = self.sums[manifest.IDS].bytes // manifest.id_dtype(self.vocab_size).itemsize
        self.sentences = max(0, self.sums[manifest.SENTENCES].bytes // manifest.OFFSETS.itemsize - 1)
        if not entries:
            self.journal.truncate(0)
            self._note({"job": self.job})
        if not self.sums[manifest.SENTENCES].bytes:
            for name in NAMES[1:]:
                self._append(name, np.zeros(1, manifest.OFFSETS))

    def fill(self, count: int | None, progress: Callable[[int, int], None] | None) -> None:
        sizes = [path.stat().st_size for path in self.inputs]
        reached: deque[int] = deque()

        def rest() -> Iterator[Block]:
            for number, (before, block) in enumerate(self._source_blocks(sizes)):
                if number >= done:
                    reached.append(before + block.read)
                    yield block

        done = self.blocks
        with _encoding(self.encoder, self.inputs, count) as over:
            for encoded in over(rest()):
                self.add(encoded)
                if self.blocks % COMMIT == 0:
                    self.commit()
                if progress is not None:
                    progress(reached.popleft(), sum(sizes))
        if progress is not None:
            progress(sum(sizes), sum(sizes))

    def _source_blocks(self, sizes: list[int]) -> Iterator[tuple[int, Block]]:
        """Every block, with the bytes of the files before its own."""
        before = 0
        for path, size in zip(self.inputs, sizes):
            for block in blocks(path, self.encoder.documents, self.encoder.field, self.encoder.errors):
                yield before, block
            before += size

    def add(self, block: Encoded) -> None:
        if not block.continues:
            self._close(self.sentences)
        self._append(manifest.IDS, block.ids)
        ends = self.tokens + np.cumsum(block.sentences, dtype=np.int64)
        self._append(manifest.SENTENCES, ends)
        counts = np.cumsum(block.documents, dtype=np.int64)
        inner = self.sentences + counts[:-1]  # the last one may go on in the next block
        inner = inner[np.diff(inner, prepend=self.closed) > 0]
        if len(inner):
            tokens = np.concatenate([[self.tokens], ends])[inner - self.sentences]
            self._append(manifest.DOCUMENTS, tokens)
            self._append(manifest.DOCUMENT_SENTENCES, inner)
            self.closed = int(inner[-1])
        self.tokens += len(block.ids)
        self.sentences += len(block.sentences)
        self.blocks += 1

    def _close(self, sentences: int) -> None:
        if sentences > self.closed:
            self._append(manifest.DOCUMENTS, np.array([self.tokens]))
            self._append(manifest.DOCUMENT_SENTENCES, np.array([sentences]))
            self.closed = sentences

    def _append(self, name: str, values: np.ndarray) -> None:
        data = values.tobytes() if name == manifest.IDS else values.astype(manifest.OFFSETS).tobytes()
        self.files[name].write(data)
        self.sums[name].update(data)

    def commit(self) -> None:
        _sync(self.files.values())
        sizes = {name: sums.bytes for name, sums in self.sums.items()}
        self._note({"blocks": self.blocks, "closed": self.closed, "bytes": sizes})
        os.fsync(self.journal.fileno())
        self.committed = True

    def _note(self, entry: dict[str, Any]) -> None:
        self.journal.write(json.dumps(entry).encode() + b"\n")
        self.journal.flush()

    def finish(self, out: pathlib.Path) -> None:
        """Gives the folder its name, in the place of an older corpus."""
        self._close(self.sentences)
        entries = {name: sums.entry() for name, sums in self.sums.items()}
        content = manifest.describe(self.vocab_size, self.tokenizer, self.source, entries)
        with open_own(self.folder / manifest.FILE, "wb") as f:
            f.write(json.dumps(content).encode())
            _sync([*self.files.values(), f])
        sync_folder(self.folder)
        old = self.folder.with_suffix(".old")
        remove(old)
        if (out / manifest.FILE).exists():
            os.rename(out, old)
        os.rename(self.folder, out)
        sync_folder(out.absolute().parent)
        (out / JOURNAL).unlink()
        remove(old)

import contextlib
import gzip
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import plmcore as plm
import pytest
from plmcore.data import Corpus, blocks, manifest, write_corpus, writing
from plmcore.files.text import files_in
from word_tokenizer import WordTokenizer

LAST = "Zebra"
WORDS = "the ship sails over a wide sea Mr. Smith said so and left 3.5 days ago".split()


def prose(seed, documents=60):
    """Documents of some lines each, with blank lines of all kinds between them."""
    random = np.random.default_rng(seed)
    text = []
    for _ in range(documents):
        for _ in range(random.integers(1, 5)):
            words = random.choice(WORDS, random.integers(1, 30))
            text.append(" ".join(words).capitalize() + str(random.choice([".", "?", '." ', ""])) + "\n")
        text.append(str(random.choice(["\n", " \t\n", "\n\n\n", "\r\n"])))
    return "".join(text)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for k in range(4):
        (tmp_path / "in" / f"{k}.txt").write_text(prose(k))
    (tmp_path / "in" / "deep" / "5.txt.gz").write_bytes(gzip.compress((prose(5) + LAST).encode()))
    (tmp_path / "in" / ".hidden").write_bytes(b"\xff")
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "SIZE", 700)


def contents(corpus):
    """Everything of a corpus as lists: documents of sentences of ids."""
    ends = corpus.sentences.tolist()
    return [
        [corpus.ids[ends[s] : ends[s + 1]].tolist() for s in range(first, last)]
        for first, last in zip(
            corpus.document_sentences[:-1].tolist(), corpus.document_sentences[1:].tolist()
        )
    ]


def expected(texts, split):
    tokenizer = WordTokenizer()
    found = [[ids.tolist() for ids in tokenizer.encode_ids(split(text)) if len(ids)] for text in texts]
    return [document for document in found if document]


def broken(text):
    first, *others = text.split("\n")
    return [first, *("\n" + line for line in others)]


@pytest.mark.parametrize("size", [1, 300, 700, 4 << 20])
def test_documents_and_sentences(folder, monkeypatch, size):
    monkeypatch.setattr(blocks, "SIZE", size)
    corpus = write_corpus(folder / "out", folder / "in", WordTokenizer(), workers=1, sentences="lines")
    texts = []
    for k in range(4):
        texts += plm.data.read_text(folder / "in" / f"{k}.txt")
    texts += plm.data.read_text(folder / "in" / "deep" / "5.txt.gz")
    assert contents(corpus) == expected(texts, broken) and len(texts) == 301
    assert corpus.documents.tolist() == corpus.sentences[corpus.document_sentences].tolist()
    assert corpus.ids.dtype == np.uint16 and not corpus.ids.flags.writeable
    assert sorted(p.name for p in folder.iterdir()) == ["in", "out"]
    assert contents(Corpus.open(folder / "out")) == contents(corpus)
    assert (
        corpus.tokenizer["cls_token_id"] == 2
        and corpus.tokenizer["fingerprint"] == WordTokenizer().fingerprint
    )
    assert corpus.source["sentences"] == "lines" and corpus.source["files"][0] == ["0.txt", len(prose(0))]


def test_every_number_of_workers_writes_the_same(folder, small_blocks):
    written = []
    for count in (1, 3):
        write_corpus(folder / f"out{count}", folder / "in", WordTokenizer(), workers=count)
        written.append({p.name: p.read_bytes() for p in (folder / f"out{count}").iterdir()})
    assert written[0] == written[1] and len(written[0]) == 5


@pytest.mark.parametrize(
    "options, text, documents",
    [
        (dict(documents="line"), "aa bb. Cc dd.\n\n \ne\n", [["aa bb.", "Cc dd."], ["e"]]),
        (dict(documents="line", sentences="document"), "aa bb. Cc dd.\r\ne", [["aa bb. Cc dd."], ["e"]]),
        (dict(documents="file", sentences="lines"), "a\n\nb\nc\n", [["a", "b", "c"]]),
        (dict(sentences="document", unwrap=True), "a b\nc d\n\ne\n", [["a b c d"], ["e"]]),
        (dict(sentences="lines"), "\n\n \n a\n b\n\n\n", [["a", "b"]]),
        (
            dict(sentences="lines"),
            "\ufeffa\n\0\nb\n\n\0\n\nc",
            [["a", "b"], ["c"]],
        ),  # NUL gives no token here
        (dict(), "", []),
        (dict(), "\n\n\n", []),
    ],
)
def test_options(tmp_path, options, text, documents):
    (tmp_path / "in.txt").write_text(text, newline="")
    corpus = write_corpus(tmp_path / "out", tmp_path / "in.txt", WordTokenizer(), workers=1, **options)
    drop_breaks = WordTokenizer().id_of("\n")
    found = [[[i for i in s if i != drop_breaks] for s in d if s != [drop_breaks]] for d in contents(corpus)]
    assert found == expected(documents, list)


def test_line_breaks_are_kept_unless_unwrapped(tmp_path):
    (tmp_path / "in.txt").write_text("a\nb\n")
    kept = write_corpus(tmp_path / "kept", tmp_path / "in.txt", WordTokenizer(), workers=1, sentences="lines")
    assert contents(kept) == expected([["a", "\nb"]], list)
    joined = write_corpus(tmp_path / "joined", tmp_path / "in.txt", WordTokenizer(), workers=1, unwrap=True)
    assert contents(joined) == expected([["a b"]], list)


def test_a_document_longer_than_a_block_stays_one(tmp_path, small_blocks):
    (tmp_path / "in.txt").write_text("".join(f"Line {k} of one.\n" for k in range(500)) + "\nnext\n")
    corpus = write_corpus(
        tmp_path / "out", [tmp_path / "in.txt"], WordTokenizer(), workers=2, sentences="lines"
    )
    assert len(corpus) == 2 and corpus.document_sentences.tolist() == [0, 500, 501]


def test_a_long_line(tmp_path):
    (tmp_path / "in.txt").write_text("x" * 10_000_000 + " y\nend\n")
    corpus = write_corpus(
        tmp_path / "out", tmp_path / "in.txt", WordTokenizer(), workers=1, sentences="lines"
    )
    assert len(corpus) == 1 and len(corpus.ids) == 4


def test_records(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "RECORDS", 2)
    texts = ["aa bb. Cc dd.", "e\nf", '"g" h']
    (tmp_path / "1.jsonl").write_text("".join(json.dumps({"body": t, "n": 1}) + "\n\n" for t in texts))
    (tmp_path / "2.csv").write_text('n,body\n1,aa bb. Cc dd.\n2,"e\nf"\n3,"""g"" h"\n')
    corpus = write_corpus(
        tmp_path / "out", [tmp_path / "1.jsonl", tmp_path / "2.csv"], WordTokenizer(), workers=1, field="body"
    )
    wanted = expected([["aa bb.", "Cc dd."], ["e\nf"], ['"g" h']], list)
    assert contents(corpus) == wanted * 2


def test_large_vocabularies(tmp_path):
    (tmp_path / "in.txt").write_text(prose(1))
    corpus = write_corpus(tmp_path / "out", tmp_path / "in.txt", WordTokenizer(100_000), workers=1)
    assert corpus.ids.dtype == np.uint32 and corpus.ids.max() > 65_535
    assert np.array_equal(Corpus.open(tmp_path / "out").ids, corpus.ids)


def test_a_corpus_in_another_process(folder):
    corpus = write_corpus(folder / "out", folder / "in", WordTokenizer(), workers=1)
    again = pickle.loads(pickle.dumps(corpus))
    assert again.path == corpus.path and np.array_equal(again.ids, corpus.ids)
    packed = pickle.dumps(corpus)
    write_corpus(folder / "out", folder / "in" / "0.txt", WordTokenizer(), workers=1, overwrite=True)
    with pytest.raises(ValueError, match="has changed"):
        pickle.loads(packed)


WRITE = """
import sys
from plmcore.data import blocks, write_corpus, writing
from word_tokenizer import WordTokenizer
blocks.SIZE, writing.COMMIT = 700, 2
write_corpus(sys.argv[1], sys.argv[2], WordTokenizer(seconds=0.02), workers=2)
"""


def test_a_killed_run_goes_on(folder, small_blocks, monkeypatch):
    whole = write_corpus(folder / "whole", folder / "in", WordTokenizer(), workers=1)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    out, journal = folder / "out", folder / ".out.partial" / "journal.jsonl"
    process = subprocess.Popen([sys.executable, "-c", WRITE, str(out), str(folder / "in")], env=env)
    before = time.monotonic()
    while not journal.exists() or journal.read_bytes().count(b"\n") < 5:
        assert process.poll() is None and time.monotonic() - before < 60
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not out.exists()
    with open(folder / ".out.partial" / manifest.IDS, "ab") as f:
        f.write(b"what was written behind the last entry")
    with open(journal, "ab") as f:
        f.write(b'{"blocks": 9')  # cut short
    done = json.loads(journal.read_bytes().split(b"\n")[-2])["blocks"]
    with pytest.raises(RuntimeError, match="ended with code 7"):  # and stopped a second time
        monkeypatch.setattr(writing, "COMMIT", 2)
        write_corpus(out, folder / "in", WordTokenizer(kill_at=LAST), workers=2)
    assert json.loads(journal.read_bytes().split(b"\n")[-2])["blocks"] > done
    seen = []
    encode = WordTokenizer.encode_ids
    monkeypatch.setattr(
        WordTokenizer, "encode_ids", lambda self, texts: (seen.append(1), encode(self, texts))[1]
    )
    with pytest.raises(
        FileExistsError, match="unfinished corpus of other files, another tokenizer or other options"
    ):
        write_corpus(out, folder / "in", WordTokenizer(), workers=1, sentences="lines")
    corpus = write_corpus(out, folder / "in", WordTokenizer(), workers=1)
    assert corpus.fingerprint == whole.fingerprint and contents(Corpus.open(out)) == contents(whole)
    assert 8 <= done and len(seen) <= sum(1 for _ in all_blocks(folder / "in")) - done
    assert sorted(p.name for p in folder.iterdir()) == ["in", "out", "whole"]


def all_blocks(folder):
    for path in files_in([folder]):
        yield from blocks.blocks(path, "blank", "text", "strict")


def test_workers_end_with_their_parent(folder):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    slow = WRITE.replace("0.02", "1.0")
    process = subprocess.Popen([sys.executable, "-c", slow, str(folder / "out"), str(folder / "in")], env=env)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    before = time.monotonic()
    while len(found := children.read_text().split()) < 2:
        assert process.poll() is None and time.monotonic() - before < 60
        time.sleep(0.02)
    process.kill()
    process.wait()
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in found):
        assert time.monotonic() - before < 90, "a worker outlives its parent"
        time.sleep(0.05)


def test_two_writers(folder, small_blocks):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE.replace("0.02", "1.0"), str(folder / "out"), str(folder / "in")], env=env
    )
    while not (journal := folder / ".out.partial" / "journal.jsonl").exists() or not journal.stat().st_size:
        assert process.poll() is None
        time.sleep(0.01)
    with pytest.raises(BlockingIOError, match="another process is writing"):
        write_corpus(folder / "out", folder / "in", WordTokenizer(), workers=1)
    process.kill()
    process.wait()


def test_overwrite(folder):
    tokenizer = WordTokenizer()
    first = write_corpus(folder / "out", folder / "in", tokenizer, workers=1)
    with pytest.raises(FileExistsError, match="is a corpus already"):
        write_corpus(folder / "out", folder / "in" / "0.txt", tokenizer, workers=1)
    second = write_corpus(folder / "out", folder / "in" / "0.txt", tokenizer, workers=1, overwrite=True)
    assert len(second) == 60 and len(first) == 301 and first[300].sum() > 0  # the old one is still mapped
    assert sorted(p.name for p in folder.iterdir()) == ["in", "out"]
    with pytest.raises(FileExistsError, match="exists and is no corpus"):
        write_corpus(folder / "in", folder / "in" / "0.txt", tokenizer, workers=1, overwrite=True)


@pytest.mark.parametrize("count", [1, 2])
def test_invalid_utf8(tmp_path, small_blocks, count):
    good = prose(3)
    (tmp_path / "in.txt").write_bytes(good.encode() + b"caf\xe9 au lait\n")
    place = rf"in\.txt', line {good.count(chr(10)) + 1}, byte {len(good) + 3}: 0xe9 is not UTF-8"
    with pytest.raises(plm.FormatError, match=place):
        write_corpus(tmp_path / "out", tmp_path / "in.txt", WordTokenizer(), workers=count)
    assert not (tmp_path / "out").exists()
    corpus = write_corpus(
        tmp_path / "new", tmp_path / "in.txt", WordTokenizer(), workers=count, errors="replace"
    )
    assert corpus.ids[-4:].tolist() == [WordTokenizer().id_of(w) for w in ("caf", "\ufffd", "au", "lait")]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.jsonl", '{"text": "x"}\n{"text": 3}\n', "a.jsonl', line 2 has a int as 'text', not a text"),
        ("a.jsonl", '\n{"body": "x"}\n', "line 2 has no 'text', only body"),
        ("a.jsonl", '{"text": "x"}\n{"text": \n', "a.jsonl', line 2: not valid JSON"),
        ("a.jsonl", '["text"]\n', "line 1: one JSON object to a line, got a list"),
        ("a.jsonl", '{"text": "x\\ud800y"}\n', r"line 1: half of a surrogate pair .U\+D800. at character 1"),
        ("a.csv", "n,body\n1,x\n", "record 0 has no 'text', only n, body"),
        ("a.txt.gz", b"\x1f\x8b\x08\x00damaged damaged damaged", "cannot be unpacked"),
    ],
)
def test_damaged_input(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(plm.FormatError, match=message):
        write_corpus(tmp_path / "out", tmp_path / name, WordTokenizer(), workers=1)


def test_a_truncated_gzip_file(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(prose(1).encode())[:-200])
    with pytest.raises(plm.FormatError, match="a.gz' cannot be unpacked: .*ended before"):
        write_corpus(tmp_path / "out", tmp_path / "a.gz", WordTokenizer(), workers=1)


def test_a_worker_that_dies(folder):
    with pytest.raises(RuntimeError, match="a worker process ended with code 7"):
        write_corpus(folder / "out", folder / "in", WordTokenizer(kill_at="Smith"), workers=2)


class TooLarge(WordTokenizer):
    def encode_ids(self, texts):
        return [np.array([self.vocab_size])] * len(texts)


def test_ids_beyond_the_vocabulary(folder):
    with pytest.raises(ValueError, match="the tokenizer gave the id 1000; its vocab_size is 1000"):
        write_corpus(folder / "out", folder / "in", TooLarge(), workers=1)


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(documents="page"), "documents must be one of 'blank', 'line', 'file', got 'page'"),
        (dict(sentences="auto"), "sentences must be one of 'rule', 'lines', 'document', got 'auto'"),
        (dict(errors="ignore"), "errors must be 'strict' or 'replace', got 'ignore'"),
        (dict(workers=0), "workers must be at least 1, got 0"),
    ],
)
def test_arguments(folder, options, message):
    with pytest.raises(ValueError, match=message):
        write_corpus(folder / "out", folder / "in", WordTokenizer(), **options)
    assert not (folder / ".out.partial").exists()


def test_no_input(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder '.*absent'"):
        write_corpus(tmp_path / "out", tmp_path / "absent", WordTokenizer())
    (tmp_path / "in").mkdir()
    with pytest.raises(FileNotFoundError, match="no files in"):
        write_corpus(tmp_path / "out", tmp_path / "in", WordTokenizer())


def test_a_full_disk(folder, small_blocks):
    whole = write_corpus(folder / "whole", folder / "in", WordTokenizer(), workers=1)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))\n" + WRITE.replace(
        "0.02", "0.0"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    command = [sys.executable, "-c", limited, str(folder / "out"), str(folder / "in")]
    assert "File too large" in subprocess.run(command, env=env, capture_output=True, text=True).stderr
    assert not (folder / "out").exists() and (folder / ".out.partial").exists()
    assert (
        write_corpus(folder / "out", folder / "in", WordTokenizer(), workers=1).fingerprint
        == whole.fingerprint
    )


def test_progress(folder, small_blocks):
    seen = []
    write_corpus(
        folder / "out", folder / "in", WordTokenizer(), workers=1, progress=lambda *at: seen.append(at)
    )
    total = sum(p.stat().st_size for p in files_in([folder / "in"]))
    assert seen == sorted(seen) and seen[-1] == (total, total) and 0 < seen[0][0] < total and len(seen) > 10


def test_small_files_need_no_processes(tmp_path):
    """Each takes as long to start as to tokenise a block."""
    for sizes, count in (([10], 1), ([writing.SIZE] * 2, 2), ([writing.SIZE * 9], 9)):
        files = [tmp_path / f"{i}.txt" for i in range(len(sizes))]
        for file, size in zip(files, sizes):
            with open(file, "wb") as f:
                f.truncate(size)
        assert writing._worthwhile(files) == count


def test_a_line_of_ten_megabytes(tmp_path):
    """With NUL bytes, and with no white space to cut at."""
    tokenizer = plm.train_tokenizer(texts=["the cat sat on the mat"], kind="byte-bpe", vocab_size=270)
    line = "cat\0sat" * 1_430_000
    (tmp_path / "in.txt").write_text(line + "\n\nthe end\n")
    corpus = write_corpus(tmp_path / "out", tmp_path / "in.txt", tokenizer, workers=1)
    assert len(corpus) == 2 and tokenizer.decode(corpus[1]) == "the end"
    assert tokenizer.decode(corpus[0]) == line


@pytest.fixture(scope="module")
def tokenizers():
    """One of each library: both encode outside of Python's lock."""
    texts = [prose(k) for k in range(3)]
    return [plm.train_tokenizer(texts=texts, kind=kind, vocab_size=150) for kind in ("wordpiece", "unigram")]


def test_threads_and_processes_write_the_same(folder, small_blocks, monkeypatch, tokenizers):
    for tokenizer in tokenizers:
        assert tokenizer.threaded
        written = []
        for most, count in (
            (4, 1),
            (4, 3),
            (0, 1),
            (0, 2),
        ):  # threads, then one after the other, then processes
            monkeypatch.setattr(writing, "THREADS", most)
            write_corpus(folder / "out", folder / "in", tokenizer, workers=count, overwrite=True)
            written.append({p.name: p.read_bytes() for p in (folder / "out").iterdir()})
        assert all(found == written[0] for found in written)


@pytest.mark.parametrize(
    "cores, megabytes, asked, kind",
    [
        (2, 1, None, (True, 2)),
        (16, 1, None, (True, 4)),
        (16, 400, None, (False, 16)),
        (2, 400, 8, (False, 8)),
        (2, 1, 1, (True, 1)),
    ],
)
def test_threads_or_processes(tmp_path, monkeypatch, tokenizers, cores, megabytes, asked, kind):
    with open(tmp_path / "in.txt", "wb") as f:
        f.truncate(megabytes * 10**6)
    chosen = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores))
    monkeypatch.setattr(
        writing.Encoder, "in_threads", lambda self, items, count: chosen.append((True, count))
    )
    monkeypatch.setattr(
        writing.workers,
        "started",
        lambda encoder, count: contextlib.nullcontext(lambda items: chosen.append((False, count))),
    )
    with writing._encoding(writing.Encoder(tokenizers[0]), [tmp_path / "in.txt"], asked) as over:
        over([])
    assert chosen == [kind]


def test_threads_take_few_blocks_ahead(folder, small_blocks, tokenizers):
    taken = []

    def items():
        for block in all_blocks(folder / "in"):
            taken.append(block)
            yield block

    encoder = writing.Encoder(tokenizers[0])
    results = encoder.in_threads(items(), 2)
    first = next(results)
    # A call each: 4 for each thread.
    assert np.array_equal(first.ids, encoder(taken[0]).ids) and len(taken) == 9
    results.close()


def test_an_error_inside_a_thread(folder, small_blocks, monkeypatch, tokenizers):
    tokenizer, calls = tokenizers[0], []
    encode = tokenizer.backend.flat

    def failing(texts):
        calls.append(texts)
        if any(LAST in text for text in texts):
            raise plm.tokenizers.TokenizerError("the tokenizer failed: a panic")
        return encode(texts)

    whole = write_corpus(folder / "whole", folder / "in", tokenizer, workers=2)
    monkeypatch.setattr(writing, "COMMIT", 2)
    monkeypatch.setattr(tokenizer.backend, "flat", failing, raising=False)
    with pytest.raises(plm.tokenizers.TokenizerError, match="a panic"):
        write_corpus(folder / "out", folder / "in", tokenizer, workers=2)
    monkeypatch.undo()
    assert not (folder / "out").exists() and (folder / ".out.partial").exists()
    monkeypatch.setattr(blocks, "SIZE", 700)
    monkeypatch.setattr(
        tokenizer.backend, "flat", lambda texts: (calls.append(0), encode(texts))[1], raising=False
    )
    assert write_corpus(folder / "out", folder / "in", tokenizer, workers=2).fingerprint == whole.fingerprint
    assert 0 < calls.count(0) < len(calls) // 2  # it went on where it was


THREADED = WRITE.replace("from word_tokenizer import WordTokenizer", "import plmcore as plm").replace(
    "WordTokenizer(seconds=0.02)", "plm.load_tokenizer(sys.argv[3])"
)


def test_a_killed_run_of_threads_goes_on(folder, small_blocks, tokenizers):
    tokenizers[1].save(folder / "tokenizer")
    tokenizer = plm.load_tokenizer(folder / "tokenizer")
    whole = write_corpus(folder / "whole", folder / "in", tokenizer, workers=2)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    journal = folder / ".out.partial" / "journal.jsonl"
    slow = THREADED.replace("write_corpus(sys", "from time import sleep\nwrite_corpus(sys").replace(
        "workers=2", "workers=2, progress=lambda *at: sleep(0.05)"
    )
    command = [sys.executable, "-c", slow, str(folder / "out"), str(folder / "in"), str(folder / "tokenizer")]
    process = subprocess.Popen(command, env=env)
    before = time.monotonic()
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert process.poll() is None and time.monotonic() - before < 60
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not (folder / "out").exists()
    assert write_corpus(folder / "out", folder / "in", tokenizer, workers=1).fingerprint == whole.fingerprint


@pytest.mark.parametrize("data", [b"caf\xe9 au lait", b"a\r\n\r\nb\rc\r\n", b"\xef\xbb\xbfa\n\nb"])
def test_text_that_is_read_the_long_way(tmp_path, tokenizers, data):
    """What is not plain UTF-8 with line feeds gives the documents of read_text."""
    (tmp_path / "in.txt").write_bytes(data)
    corpus = write_corpus(
        tmp_path / "out", tmp_path / "in.txt", tokenizers[0], errors="replace", sentences="document"
    )
    texts = plm.data.read_text(tmp_path / "in.txt", errors="replace")
    assert [d.tolist() for d in corpus] == [ids.tolist() for ids in tokenizers[0].encode_ids(list(texts))]


def test_what_parquet_needs_is_missed_before_anything_is_written(tmp_path, monkeypatch):
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "a.txt").write_text("a text\n")
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'plmcore\[parquet\]'"):
        write_corpus(tmp_path / "out", [tmp_path / "a.txt", tmp_path / "b.parquet"], None)
    assert {p.name for p in tmp_path.iterdir()} == {"a.txt", "b.parquet"}

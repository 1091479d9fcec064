"""Test sets: utterances with their audio and reference, and how texts are compared.

test-clean, dev-other, ...     LibriSpeech, from OpenSLR: LibriSpeech/SET/SPEAKER/CHAPTER/*.flac and *.trans.txt in a .tar.gz
esb/ami, esb/tedlium, ...      the sets of the Open ASR Leaderboard, from HuggingFace's Hub: parquet files with audio and text
"""

from __future__ import annotations

import dataclasses
import io
import json
import pathlib
import re
import shutil
import tarfile
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from fetch import DownloadError, Hub, fetch, md5_of

from warpfst.transcribe import audio

LIBRISPEECH = ("test-clean", "test-other", "dev-clean", "dev-other")
LEADERBOARD = ("ami", "earnings22", "gigaspeech", "librispeech/test.clean", "librispeech/test.other", "spgispeech", "tedlium", "voxpopuli")
_DATASET = "hf-audio/esb-datasets-test-only-sorted"
_NORMALIZER_MODEL = "openai/whisper-tiny"  # has the list of British and American spellings, normalizer.json
_NOT_SCORED = "ignore time segment in scoring"  # the reference of TED-LIUM's gaps, which the leaderboard leaves out
_TEXT_COLUMNS = ("text", "sentence", "normalized_text", "transcript", "transcription")
Normalizer = Callable[[str], str]


@dataclasses.dataclass(frozen=True)
class Utterance:
    key: str
    text: str
    source: pathlib.Path | bytes  # an audio file, or its content

    def samples(self, rate: int) -> np.ndarray:
        """float32 [samples] at `rate`, mean of the channels."""
        file = io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source
        try:
            data, own_rate = audio.need("soundfile").read(file, dtype="float32", always_2d=True)
        except RuntimeError as error:  # soundfile's errors
            raise SystemExit(f"{self.key}: {error}") from error
        return audio.resample(data.mean(axis=1), own_rate, rate)


def plain_text(text: str) -> str:
    """Text as LibriSpeech writes it: upper case, letters and apostrophes. Marks above letters go; other characters separate words."""
    letters = "".join(character for character in unicodedata.normalize("NFKD", text) if not unicodedata.combining(character))
    kept = re.sub(r"[^A-Z']+", " ", letters.upper().replace("\u2019", "'"))
    return " ".join(word for word in kept.split() if word.strip("'"))


def whisper_text(hub: Hub) -> Normalizer:
    """Whisper's English normalizer, which the leaderboard uses for references and hypotheses."""
    try:
        from transformers.models.whisper.english_normalizer import EnglishTextNormalizer
    except ImportError as error:
        raise SystemExit(f"the leaderboard's text normalizer is part of transformers ({error}): pip install transformers, or give --normalizer plain") from error
    spellings = json.loads(hub.model_file(_NORMALIZER_MODEL, "normalizer.json").read_text(encoding="utf-8"))
    made: Normalizer = EnglishTextNormalizer(spellings)
    return made


class LibriSpeech:
    """A set of LibriSpeech."""

    default_normalizer = "plain"

    def __init__(self, name: str, url: str, cache: pathlib.Path) -> None:
        self.name, self._cache = name, cache
        self._url = f"{url}/12/{name}.tar.gz"

    def prepare(self) -> None:
        """Downloads and unpacks what is not there yet."""
        if self._folder.exists():
            return
        archive = self._cache / f"{self.name}.tar.gz"
        if not archive.exists():
            fetch(self._url, archive, checksum=md5_of(self._url))
        self._unpack(archive)

    @property
    def _folder(self) -> pathlib.Path:
        return self._cache / "LibriSpeech" / self.name

    def _unpack(self, archive: pathlib.Path) -> None:
        """Writes the recordings and transcripts of the archive, and nothing outside the folder. The folder gets its name when it is complete."""
        part = self._folder.with_name(f"{self.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        inside = re.compile(rf"(?:\./)?LibriSpeech/{re.escape(self.name)}/(\w+/\w+/[\w-]+\.(?:flac|trans\.txt))")
        count = 0
        try:
            with tarfile.open(archive) as packed:
                for member in packed:
                    match = inside.fullmatch(member.name)
                    content = packed.extractfile(member) if match and member.isfile() else None
                    if match is None or content is None:
                        continue
                    path = part / match[1]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("wb") as file:
                        shutil.copyfileobj(content, file)
                    count += 1
        except (tarfile.TarError, EOFError, OSError) as error:
            raise DownloadError(f"{archive}: {error}; delete it and run again") from error
        if count == 0:
            raise DownloadError(f"{archive}: no files LibriSpeech/{self.name}/SPEAKER/CHAPTER/*.flac")
        part.replace(self._folder)

    def utterances(self) -> Iterator[Utterance]:
        for transcripts in sorted(self._folder.glob("*/*/*.trans.txt")):
            for number, line in enumerate(transcripts.read_text(encoding="utf-8").splitlines(), 1):
                key, _, text = line.partition(" ")
                path = transcripts.parent / f"{key}.flac"
                if not path.exists():
                    raise SystemExit(f"{transcripts}:{number}: no recording {path.name}")
                yield Utterance(key, text, path)


class Leaderboard:
    """A set of the Open ASR Leaderboard, esb/CONFIG or esb/CONFIG/SPLIT. It needs pyarrow."""

    default_normalizer = "whisper"

    def __init__(self, name: str, hub: Hub) -> None:
        self.name, self._hub = name, hub
        self._config, _, split = name.removeprefix("esb/").partition("/")
        self._split = split or "test"
        self._files: list[pathlib.Path] = []

    def prepare(self) -> None:
        """Downloads the set's parquet files. Their number, sizes and checksums are those that the Hub lists."""
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise SystemExit(f"the sets of the leaderboard are parquet files ({error}): pip install pyarrow") from error
        entries = self._hub.files(_DATASET, self._config)
        chosen = sorted((entry for entry in entries if re.fullmatch(rf"{re.escape(self._split)}-\d+-of-\d+\.parquet", entry["path"].rpartition("/")[2])), key=lambda entry: entry["path"])
        if not chosen:
            there = ", ".join(sorted({entry["path"].rpartition("/")[2].rpartition("-of-")[0].rpartition("-")[0] for entry in entries} - {""}))
            raise DownloadError(f"{_DATASET}: no files of the split {self._split!r} in {self._config}; there are: {there or 'none'}")
        self._files = [self._hub.dataset_file(_DATASET, entry) for entry in chosen]

    def utterances(self) -> Iterator[Utterance]:
        import pyarrow.parquet

        for path in self._files:
            with pyarrow.parquet.ParquetFile(path) as file:
                names = file.schema_arrow.names
                text = next((name for name in _TEXT_COLUMNS if name in names), None)
                if text is None or "audio" not in names:
                    raise SystemExit(f"{path}: columns {', '.join(names)}; expected audio and one of {', '.join(_TEXT_COLUMNS)}")
                key = ["id"] if "id" in names else []
                count = 0
                for batch in file.iter_batches(batch_size=32, columns=[*key, "audio", text]):
                    for row in batch.to_pylist():
                        count += 1
                        yield Utterance(str(row.get("id", f"{path.stem}-{count}")), row[text] or "", row["audio"]["bytes"])


def scored(utterance: Utterance, normalize: Normalizer) -> bool:
    """Is the utterance scored? Those without a reference are not, as on the leaderboard."""
    return utterance.text.strip() != _NOT_SCORED and bool(normalize(utterance.text).strip())


def open_set(name: str, openslr_url: str, hub: Hub, cache: pathlib.Path) -> Any:
    if name in LIBRISPEECH:
        return LibriSpeech(name, openslr_url, cache)
    if name.startswith("esb/"):
        return Leaderboard(name, hub)
    raise SystemExit(f"no set {name!r}: expected {', '.join(LIBRISPEECH)}, esb, or one of {', '.join(f'esb/{one}' for one in LEADERBOARD)}")

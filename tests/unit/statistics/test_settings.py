"""The settings of a comparison: each mistake is one clear error."""

from __future__ import annotations

import pytest
from tests.fixtures.synthetic_records import settings_record

from servingbench.errors import UserError
from servingbench.statistics.settings import Settings

METHODS = ["autoregressive", "autoregressive_aa", "suffix", "tree"]


def parse(**changes):
    return Settings.from_json(settings_record(METHODS, ["code"], **changes), file="--settings")


def test_good_settings():
    settings = parse(contrasts=[["tree", "suffix"]])
    assert (settings.baseline, settings.aa, settings.primary) == ("autoregressive", "autoregressive_aa", "tree")
    assert settings.contrasts == (("tree", "suffix"),)
    assert set(settings.recorded()) == {"resamples", "confidence", "seed", "interval", "primary", "timing"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"baselin": "x"}, "baselin: unknown key.*'baseline'"),
        ({"primary": "treee"}, "primary: unknown method.*'treee'.*'tree'"),
        ({"aa": "b"}, "aa: unknown method"),
        ({"contrasts": [["tree", "path"]]}, "contrasts: unknown method.*'path'"),
        ({"contrasts": [["tree", "tree"]]}, "compares a method with itself"),
        ({"primary": "autoregressive"}, "primary: is the baseline itself"),
        ({"aa": "autoregressive"}, "aa: is the baseline itself"),
        ({"confidence": 95}, "confidence: must lie between 0 and 1"),
        ({"interval": "bc"}, "interval: not allowed"),
        ({"timing": "force"}, "timing: not allowed.*'forced'"),
        ({"resamples": 38}, "resamples: too few.*at least 39"),
        ({"workloads": []}, "workloads: no workload"),
        ({"workloads": ["overall"]}, "workloads: is the scope of all"),
        ({"methods": "tree"}, "methods: must be a list"),
        ({"contrasts": [["tree"]]}, "contrasts: must be a pair"),
        ({"key": {"gpu": "cpu"}}, "key: missing revision, seed, limit, model"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(UserError, match=message):
        parse(**changes)


def test_a_missing_key():
    value = settings_record(METHODS, ["code"])
    del value["seed"]
    with pytest.raises(UserError, match="missing seed"):
        Settings.from_json(value, file="--settings")

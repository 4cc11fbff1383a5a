"""A run refuses a device that is not its row's, and says what it found and what to do."""

from types import SimpleNamespace

import pytest
import torch

from servingbench.errors import UserError
from servingbench.measure.device import prepare_device

H100 = {"label": "H100", "kind": "cuda", "device_name": "H100", "compute_capability": "9.0", "mem_gib": 80}


def found(monkeypatch, name="NVIDIA H100 80GB HBM3", major=9, minor=0, gib=79.1):
    properties = SimpleNamespace(name=name, major=major, minor=minor, total_memory=int(gib * 2**30))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)


def test_the_cpu_row_sets_its_threads_and_never_takes_a_gpu(monkeypatch):
    found(monkeypatch)
    before = torch.get_num_threads()
    try:
        assert prepare_device("cpu", {"label": "CPU", "kind": "cpu", "threads": before + 1}) == "cpu"
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_the_rows_own_device_is_taken(monkeypatch):
    found(monkeypatch)
    assert prepare_device("h100", H100) == "cuda:0"


def test_no_cuda_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match=r"gpus\.yaml: h100: found no CUDA device.*Run on a machine with this GPU"):
        prepare_device("h100", H100)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ({"name": "NVIDIA A100-SXM4-80GB", "major": 8}, r"named like 'H100'.*A100-SXM4-80GB.*gpus\.yaml"),
        ({"major": 8, "minor": 6}, r"compute capability 9\.0.*'8\.6'"),
        ({"name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "gib": 9.75}, r"80 GiB of device memory.*9\.8 GiB.*MIG"),
    ],
)
def test_another_device_is_refused(monkeypatch, device, message):
    found(monkeypatch, **device)
    with pytest.raises(UserError, match=message):
        prepare_device("h100", H100)

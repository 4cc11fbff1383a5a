"""The device's description and samples: from pynvml, from nvidia-smi, or honestly none."""

import subprocess
from types import SimpleNamespace

import pytest
import torch

from servingbench.measure import monitor
from servingbench.measure.monitor import DeviceMonitor


@pytest.fixture
def gpu(monkeypatch):
    properties = SimpleNamespace(name="NVIDIA H100", major=9, minor=0, total_memory=80 << 30, uuid="ab-cd")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)


def no_pynvml(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(monitor.importlib, "import_module", missing)


def smi(monkeypatch, known):
    """An nvidia-smi that answers for the fields it knows; the commands it was given."""
    commands = []

    def run(command, **options):
        commands.append(command)
        fields = (
            next(part for part in command if part.startswith("--query-gpu=")).removeprefix("--query-gpu=").split(",")
        )
        if not set(fields) <= set(known):
            return SimpleNamespace(returncode=2, stdout="Field is not a valid field to query.")
        return SimpleNamespace(returncode=0, stdout=", ".join(known[field] for field in fields) + "\n")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


CLOCKS = {
    "clocks.sm": "1980",
    "clocks.mem": "2619",
    "temperature.gpu": "41",
    "power.draw": "[N/A]",
    "driver_version": "550.1",
}


@pytest.mark.parametrize("word", ["clocks_event_reasons.active", "clocks_throttle_reasons.active"])
def test_nvidia_smi_of_either_generation_answers(monkeypatch, gpu, word):
    no_pynvml(monkeypatch)
    commands = smi(monkeypatch, {**CLOCKS, word: "0x0000000000000004"})
    watch = DeviceMonitor("cuda:0")
    for _ in range(2):
        sample = watch.sample()
        assert sample.pop("time")
        assert sample == {
            "sm_mhz": 1980, "memory_mhz": 2619, "temperature_c": 41, "power_w": None,
            "throttle_reasons": "0x0000000000000004",
        }  # fmt: skip
    assert all("--id=GPU-ab-cd" in command for command in commands)
    described = watch.describe()
    assert (described["driver"], described["compute_capability"], described["nulls"]) == ("550.1", "9.0", {})


def test_pynvml_is_asked_where_it_is_installed(monkeypatch, gpu):
    class Nvml:
        NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
        NVMLError = RuntimeError

        def __getattr__(self, name):
            values = {
                "nvmlInit": None,
                "nvmlDeviceGetHandleByUUID": "handle",
                "nvmlDeviceGetTemperature": 50,
                "nvmlDeviceGetPowerUsage": 301_260,
                "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
                "nvmlSystemGetDriverVersion": b"560.2",
            }
            return lambda *arguments: values[name]

        def nvmlDeviceGetClockInfo(self, handle, kind):
            return {1: 1980, 2: 2619}[kind]

    monkeypatch.setattr(monitor.importlib, "import_module", lambda name: Nvml())
    watch = DeviceMonitor("cuda:0")
    sample = watch.sample()
    assert (sample["sm_mhz"], sample["memory_mhz"], sample["power_w"]) == (1980, 2619, 301.3)
    assert sample["throttle_reasons"] == "0x4"
    assert watch.describe()["driver"] == "560.2"


def test_without_either_a_sample_says_so(monkeypatch, gpu):
    no_pynvml(monkeypatch)

    def missing(command, **options):
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(subprocess, "run", missing)
    watch = DeviceMonitor("cuda:0")
    assert "reason" in watch.sample()
    assert watch.describe()["driver"] is None
    assert watch.describe()["nulls"]["driver"]


def test_a_cpu_gives_its_load():
    watch = DeviceMonitor("cpu")
    assert watch.sample()["load_average_1min"] >= 0
    described = watch.describe()
    assert described["kind"] == "cpu"
    assert described["name"]
    assert described["mem_mib"] > 0
    assert set(described["nulls"]) == {"compute_capability", "driver"}

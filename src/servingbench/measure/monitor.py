"""What the device was doing: clocks, temperature and throttle reasons, sampled between prompts."""

from __future__ import annotations

import csv
import importlib
import io
import os
import subprocess
from typing import Any

import torch

from servingbench.measure.journal import now
from servingbench.provenance import cpu_description

# Drivers from 2023 on say "event reasons" where older ones say "throttle reasons"; each knows only its own word.
_THROTTLE_FIELDS: tuple[str, ...] = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")


class DeviceMonitor:
    """Describes the device once and samples it on request; a sample is taken outside of every timed region.

    Uses pynvml where it is installed, else nvidia-smi; without either, samples say so in ``reason``. On a CPU a sample
    is the load average: anything well above the run's own threads means that the machine was not quiet.
    """

    def __init__(self, device: str) -> None:
        self._cuda = device.startswith("cuda")
        self._device = device
        self._nvml: tuple[Any, Any] | None = _open_nvml(device) if self._cuda else None
        self._throttle_fields = _THROTTLE_FIELDS

    def describe(self) -> dict[str, Any]:
        """Name, kind, compute capability, driver and memory; the samples are added by the run."""
        if not self._cuda:
            cpu = cpu_description()
            reason = {"compute_capability": "a CPU has none", "driver": "a CPU has none"}
            described = {"name": cpu["name"], "kind": "cpu", "compute_capability": None, "driver": None}
            return {**described, "mem_mib": cpu["mem_mib"], "nulls": reason}
        found = torch.cuda.get_device_properties(self._device)
        driver = self._driver()
        return {
            "name": found.name,
            "kind": "cuda",
            "compute_capability": f"{found.major}.{found.minor}",
            "driver": driver,
            "mem_mib": found.total_memory // 2**20,
            "cuda": torch.version.cuda,
            "nulls": {} if driver else {"driver": "neither pynvml nor nvidia-smi answered"},
        }

    def sample(self) -> dict[str, Any]:
        """One sample, with its time."""
        if not self._cuda:
            return {"time": now(), "load_average_1min": round(os.getloadavg()[0], 2)}
        values = self._sample_nvml(*self._nvml) if self._nvml else self._sample_smi()
        return {"time": now(), **(values or {"reason": "neither pynvml nor nvidia-smi answered"})}

    def _driver(self) -> str | None:
        if self._nvml:
            version = self._nvml[0].nvmlSystemGetDriverVersion()
            return version.decode() if isinstance(version, bytes) else str(version)
        values = _smi(["driver_version"], self._device)
        return values[0] if values else None

    def _sample_nvml(self, nvml: Any, handle: Any) -> dict[str, Any] | None:
        try:
            return {
                "sm_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                "memory_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                "temperature_c": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                "power_w": round(nvml.nvmlDeviceGetPowerUsage(handle) / 1000, 1),
                "throttle_reasons": hex(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
            }
        except nvml.NVMLError:
            return self._sample_smi()

    def _sample_smi(self) -> dict[str, Any] | None:
        for throttle in self._throttle_fields:
            values = _smi(["clocks.sm", "clocks.mem", "temperature.gpu", "power.draw", throttle], self._device)
            if values:
                self._throttle_fields = (throttle,)
                names = ("sm_mhz", "memory_mhz", "temperature_c", "power_w")
                numbers = {name: _number(value) for name, value in zip(names, values, strict=False)}
                return {**numbers, "throttle_reasons": values[-1]}
        return None


def _uuid(device: str) -> str:
    """The device as NVIDIA's tools know it: torch's index counts visible devices only, theirs count all."""
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"


def _open_nvml(device: str) -> tuple[Any, Any] | None:
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
        return nvml, nvml.nvmlDeviceGetHandleByUUID(_uuid(device))
    except nvml.NVMLError:
        return None


def _smi(fields: list[str], device: str) -> list[str] | None:
    query = f"--query-gpu={','.join(fields)}"
    command = ["nvidia-smi", f"--id={_uuid(device)}", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    row = next(csv.reader(io.StringIO(done.stdout)), [])
    return [value.strip() for value in row] if len(row) == len(fields) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

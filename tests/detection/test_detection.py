"""Which backend a process gets: what the machine shows decides, and the report says why."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbxrt
from libraries import as_32_bit, make_library
from machines import AUDIO, add_card, add_node, empty_bus, stub_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.needs("cc"),
    pytest.mark.skipif(sys.platform != "linux", reason="the bus and the nodes of Linux"),
]

NVIDIA, AMD = 0x10DE, 0x1002
VARIABLES = (
    "NBX_GPU_BACKEND",
    "NBXRT_BACKEND_PATH",
    "TRITON_DEFAULT_BACKEND",
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    *("CUDA_PATH", "CUDA_HOME", "ROCM_PATH", "HIP_PATH"),
)


class Box:
    """A machine of a test: its root folder, and what is put on it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.log = root / "calls.log"
        self._monkeypatch = monkeypatch
        empty_bus(root)

    def runtime(self, backend: str, **stub: Any) -> Path:
        """The backend's runtime library is installed."""
        library = stub_runtime(self.root / f"lib{backend}-stub.so", backend, log=self.log, **stub)
        self._monkeypatch.setenv(f"NBXRT_{backend.upper()}_RUNTIME", str(library))
        return library

    def no_runtime(self, *backends: str) -> None:
        for backend in backends:
            self._monkeypatch.setenv(f"NBXRT_{backend.upper()}_RUNTIME", str(self.root / "not-there.so"))

    def nvidia(self, *, driver: bool = True) -> None:
        add_card(self.root, NVIDIA)
        add_node(self.root, "/dev/nvidia0")
        if driver:
            make_library(self.root / "usr/lib64/libcuda.so.1")

    def amd(self) -> None:
        add_card(self.root, AMD)
        add_node(self.root, "/dev/kfd")

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.setenv("NBXRT_SYSROOT", str(root))
    nbxrt.reset()
    here = Box(root, monkeypatch)
    here.no_runtime("cuda", "hip")
    yield here
    nbxrt.reset()


class TestChoice:
    def test_a_backend_with_a_device_comes_before_one_whose_library_merely_loads(self, box: Box) -> None:
        box.runtime("cuda")
        box.runtime("hip", count=1)
        box.amd()

        assert nbxrt.gpu_backend() == "hip"

    def test_only_when_none_has_a_device_the_first_that_loads_is_named(self, box: Box) -> None:
        box.runtime("cuda")
        box.runtime("hip")

        assert nbxrt.gpu_backend() == "cuda"
        with pytest.raises(nbxrt.NoDeviceError, match="no card of PCI vendor 0x10de"):
            nbxrt.gpu_backend(require_device=True)

    def test_one_that_is_nothing_without_a_device_is_never_named_without_one(
        self, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from toys import PLAIN, write

        monkeypatch.setenv("NBXRT_TOY_RUNTIME", str(make_library(tmp_path / "libtoy.so.1", PLAIN)))
        presence = {"required": True, "linux": {"nodes": ["/dev/toy"]}}
        box.set(NBXRT_BACKEND_PATH=str(write(tmp_path, priority=1, presence=presence)))

        with pytest.raises(nbxrt.BackendNotFoundError, match=r"toy: library yes .*, device no"):
            nbxrt.gpu_backend()
        box.runtime("cuda")
        assert nbxrt.gpu_backend() == "cuda"
        add_node(box.root, "/dev/toy")
        assert nbxrt.gpu_backend() == "toy"

    def test_open_takes_host_memory_where_a_toolkit_has_no_card(self, box: Box) -> None:
        box.runtime("cuda")

        assert nbxrt.open().name == "host"
        assert nbxrt.gpu_backend() == "cuda"

    def test_nothing_usable_is_an_error_with_the_whole_report(self, box: Box) -> None:
        with pytest.raises(nbxrt.BackendNotFoundError) as caught:
            nbxrt.gpu_backend()

        assert "cuda: library" in str(caught.value)
        assert "hip: library" in str(caught.value)
        assert "hint: `nbxrt doctor`" in str(caught.value)

    def test_host_is_never_answered_unless_it_is_forced(self, box: Box) -> None:
        runtime = nbxrt.open()

        assert runtime.name == "host"
        with pytest.raises(nbxrt.BackendNotFoundError):
            nbxrt.gpu_backend()
        with pytest.raises(nbxrt.BackendNotFoundError):
            nbxrt.gpu_runtime()

    def test_host_is_answered_when_it_is_forced_or_opened_by_name(self, box: Box) -> None:
        box.set(NBX_GPU_BACKEND="host")
        forced = (nbxrt.gpu_backend(), nbxrt.gpu_runtime().name, nbxrt.open().name)
        nbxrt.reset()
        box.set(NBX_GPU_BACKEND="")
        named = nbxrt.open("host")

        assert forced == ("host", "host", "host")
        assert (nbxrt.gpu_backend(), nbxrt.gpu_runtime()) == ("host", named)

    def test_open_gives_a_gpu_first_and_the_same_runtime_each_time(self, box: Box) -> None:
        box.runtime("cuda", count=1)
        box.nvidia()

        runtime = nbxrt.open()

        assert runtime.name == "cuda"
        assert nbxrt.open("cuda") is runtime
        assert nbxrt.gpu_runtime() is runtime

    def test_a_backend_of_another_platform_is_never_named(self, box: Box) -> None:
        assert nbxrt.detect()["metal"].library == "no"
        assert "does not run on linux" in nbxrt.detect()["metal"].device_reason


class TestForcing:
    """B10: the variable that forces a backend."""

    @pytest.mark.parametrize("value", ["host", " host "], ids=repr)
    def test_space_around_the_name_does_not_count(self, box: Box, value: str) -> None:
        box.set(NBX_GPU_BACKEND=value)

        assert nbxrt.gpu_backend() == "host"

    def test_empty_means_unset(self, box: Box) -> None:
        box.set(NBX_GPU_BACKEND="")
        box.runtime("hip", count=1)
        box.amd()

        assert nbxrt.gpu_backend() == "hip"

    @pytest.mark.parametrize(("value", "near"), [("CUDA", "cuda"), ("cuda,hip", "cuda"), ("hips", "hip")])
    def test_an_unknown_name_is_refused_with_the_known_ones_and_the_nearest(
        self, box: Box, value: str, near: str
    ) -> None:
        box.set(NBX_GPU_BACKEND=value)

        for ask in (nbxrt.gpu_backend, nbxrt.gpu_runtime, nbxrt.open):
            with pytest.raises(nbxrt.BackendNotFoundError) as caught:
                ask()
            assert f"NBX_GPU_BACKEND={value!r} is not a known backend: cuda, hip, metal" in str(caught.value)
            assert f"did you mean `{near}`?" in str(caught.value)

    @pytest.mark.parametrize(("name", "shown"), [("\0\x1b[31m", r"\x00\x1b[31m"), ("x" * 5000, "x" * 60 + "…")])
    def test_an_odd_name_is_quoted_as_far_as_people_read(self, name: str, shown: str) -> None:
        with pytest.raises(nbxrt.BackendNotFoundError, match="is not a known backend") as caught:
            nbxrt.open(name)

        assert str(caught.value).startswith(f"`{shown}` is not")

    def test_a_name_that_is_like_none_gets_no_guess(self, box: Box) -> None:
        with pytest.raises(nbxrt.BackendNotFoundError) as caught:
            nbxrt.open("nope")

        assert "did you mean" not in str(caught.value)

    def test_a_users_backend_is_among_the_known_ones(self, box: Box, tmp_path: Path) -> None:
        from toys import write

        box.set(NBXRT_BACKEND_PATH=str(write(tmp_path)), NBX_GPU_BACKEND="nvidia")

        with pytest.raises(nbxrt.BackendNotFoundError, match="toy"):
            nbxrt.gpu_backend()


class TestPresence:
    def test_where_the_system_can_tell_no_vendor_function_is_called(self, box: Box) -> None:
        box.runtime("cuda", count=1)
        box.nvidia()

        nbxrt.gpu_backend()
        nbxrt.detect()
        nbxrt.open()

        assert box.calls == []

    def test_a_sound_function_of_the_vendor_is_no_card(self, box: Box) -> None:
        box.runtime("cuda")
        add_card(box.root, NVIDIA, AUDIO)
        add_node(box.root, "/dev/nvidia0")

        assert nbxrt.detect()["cuda"].device == "no"

    def test_a_card_without_its_device_node_is_not_usable_and_the_report_says_why(self, box: Box) -> None:
        box.runtime("hip")
        add_card(box.root, AMD)

        report = nbxrt.detect()["hip"]

        assert report.device == "no"
        assert "no /dev/kfd: its kernel driver is not loaded or not passed in" in report.device_reason

    @pytest.mark.parametrize(
        ("node", "there"),
        [("nvidia0", "yes"), ("nvidia12", "yes"), ("nvidiactl", "no"), ("nvidia-uvm", "no"), ("xnvidia0", "no")],
    )
    def test_a_node_is_told_by_the_pattern_of_its_name(self, box: Box, node: str, there: str) -> None:
        box.runtime("cuda", count=1)
        add_card(box.root, NVIDIA)
        add_node(box.root, f"/dev/{node}")

        assert nbxrt.detect()["cuda"].device == there

    def test_where_a_card_is_shown_the_way_to_it_imports_no_regular_expressions(self, box: Box) -> None:
        box.runtime("cuda", count=1)
        box.nvidia()
        program = "import sys; sys.path[:] = eval(sys.argv[1]); import nbxrt; nbxrt.open(); print('re' in sys.modules)"

        said = subprocess.run(
            [sys.executable, "-S", "-c", program, repr(sys.path)], capture_output=True, text=True, check=True
        ).stdout

        assert said == "False\n"

    def test_where_only_the_runtime_can_tell_it_is_asked(self, box: Box) -> None:
        box.runtime("cuda", count=2)
        add_node(box.root, "/dev/dxg")

        report = nbxrt.detect()["cuda"]

        assert (report.device, report.count) == ("yes", 2)
        assert box.calls == ["cudaGetDeviceCount"]

    @pytest.mark.parametrize("what", ["nothing", "empty", "stub"])
    def test_a_card_in_a_container_without_the_drivers_library_is_not_available(self, box: Box, what: str) -> None:
        box.runtime("cuda", code=35)
        box.nvidia(driver=False)
        if what == "empty":
            add_node(box.root, "/usr/lib64/libcuda.so.1")
        if what == "stub":
            make_library(box.root / "usr/local/cuda/lib64/stubs/libcuda.so")
            (box.root / "usr/lib64").mkdir(parents=True)
            (box.root / "usr/lib64/libcuda.so.1").symlink_to(box.root / "usr/local/cuda/lib64/stubs/libcuda.so")

        found = nbxrt.detect()

        assert not found.is_available()
        assert "no library of the driver is found" in found["cuda"].device_reason
        assert "there is no NVIDIA driver here" in found["cuda"].device_reason

    @pytest.mark.parametrize("value", ["", "-1"], ids=repr)
    def test_hidden_devices_are_counted_by_the_runtime_and_not_guessed(self, box: Box, value: str) -> None:
        """B01, B04: what a value of the variable means is the vendor's affair."""
        box.runtime("cuda", code=100)
        box.nvidia()
        box.set(CUDA_VISIBLE_DEVICES=value)

        found = nbxrt.detect()

        assert (found["cuda"].library, found["cuda"].device, found["cuda"].count) == ("yes", "no", 0)
        assert f"CUDA_VISIBLE_DEVICES={value!r}" in found["cuda"].device_reason
        assert not found.is_available()
        with pytest.raises(nbxrt.NoDeviceError, match=f"CUDA_VISIBLE_DEVICES is set to {value!r}"):
            nbxrt.open("cuda").malloc(16)

    def test_an_empty_variable_that_the_vendor_ignores_hides_nothing(self, box: Box) -> None:
        box.runtime("hip", count=1)
        box.amd()
        box.set(HIP_VISIBLE_DEVICES="")

        assert nbxrt.detect()["hip"].count == 1

    def test_hiding_one_vendors_cards_gives_the_other_vendor(self, box: Box) -> None:
        box.runtime("cuda", code=100)
        box.runtime("hip", count=1)
        box.nvidia()
        box.amd()
        box.set(CUDA_VISIBLE_DEVICES="")

        assert nbxrt.gpu_backend() == "hip"

    def test_with_one_vendor_a_visibility_variable_does_not_make_naming_touch_the_driver(self, box: Box) -> None:
        box.runtime("cuda", count=1)
        box.nvidia()
        box.set(CUDA_VISIBLE_DEVICES="0")

        assert nbxrt.gpu_backend() == "cuda"
        assert box.calls == []

    def test_where_a_variable_hides_none_of_the_cards_no_other_vendors_library_is_loaded(self, box: Box) -> None:
        box.runtime("cuda", count=1)
        other = box.runtime("hip", count=1)
        box.nvidia()
        box.amd()
        box.set(CUDA_VISIBLE_DEVICES="0")

        assert nbxrt.gpu_backend() == "cuda"
        assert str(other) not in Path("/proc/self/maps").read_text()


class TestBroken:
    """Broken is not absent."""

    def test_a_broken_library_is_reported_by_name_and_detection_goes_on(self, box: Box) -> None:
        broken = as_32_bit(make_library(box.root / "libbroken.so"))
        box.set(NBXRT_CUDA_RUNTIME=str(broken))
        box.nvidia()
        box.runtime("hip", count=1)
        box.amd()

        with pytest.warns(RuntimeWarning, match=f"NVIDIA CUDA: .*{broken}.*ELF32"):
            assert nbxrt.gpu_backend() == "hip"
        assert nbxrt.detect()["cuda"].library == "broken"
        with pytest.raises(nbxrt.LibraryBrokenError, match=str(broken)):
            nbxrt.open("cuda")

    def test_an_absent_library_is_named_with_every_place_and_what_to_do(self, box: Box) -> None:
        with pytest.raises(nbxrt.LibraryNotFoundError) as caught:
            nbxrt.open("cuda")

        assert not isinstance(caught.value, nbxrt.LibraryBrokenError)
        assert "not-there.so" in str(caught.value)
        assert "backends/cuda.yaml:" in str(caught.value)
        assert "hint: " in str(caught.value)


class TestFreshness:
    """B11: what changes is seen."""

    def test_a_failed_detection_is_not_kept(self, box: Box) -> None:
        before = nbxrt.detect().is_available()
        box.runtime("cuda", count=1)
        box.nvidia()

        assert (before, nbxrt.detect().is_available()) == (False, True)

    def test_a_backend_file_that_is_added_is_seen(
        self, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from toys import PLAIN, write

        box.runtime("cuda", count=1)
        box.nvidia()
        nbxrt.detect()
        monkeypatch.setenv("NBXRT_TOY_RUNTIME", str(make_library(tmp_path / "libtoy.so.1", PLAIN)))
        box.set(NBXRT_BACKEND_PATH=str(write(tmp_path, priority=1)))

        assert nbxrt.detect()["toy"].library == "yes"
        assert nbxrt.gpu_backend() == "toy"

    def test_two_threads_get_one_report_and_one_runtime(self, box: Box) -> None:
        box.runtime("cuda", count=1)
        box.nvidia()
        found: list[Any] = []
        threads = [
            threading.Thread(target=lambda: found.append((nbxrt.detect(), nbxrt.gpu_runtime()))) for _ in range(8)
        ]

        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len({(id(report), id(runtime)) for report, runtime in found}) == 1

    def test_reset_forgets_what_was_found_and_opened(self, box: Box) -> None:
        box.runtime("cuda", count=1)
        box.nvidia()
        first = nbxrt.open()

        nbxrt.reset()

        assert nbxrt.open() is not first

    def test_detect_never_raises_for_an_unusable_file_and_selecting_it_says_why(self, box: Box, tmp_path: Path) -> None:
        (tmp_path / "bad.yaml").write_text("name: bad\noperations: [")
        box.set(NBXRT_BACKEND_PATH=str(tmp_path / "bad.yaml"))

        assert nbxrt.detect()["bad"].library == "broken"
        with pytest.raises(nbxrt.DescriptionError, match=r"bad\.yaml:2"):
            nbxrt.open("bad")

    def test_detect_never_raises_where_warnings_are_errors(self, box: Box) -> None:
        box.set(CUDA_PATH="/one", CUDA_HOME="/other", NBXRT_CUDA_RUNTIME="")

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = nbxrt.detect()["cuda"]
            with pytest.raises(RuntimeWarning, match="name different places"):
                nbxrt.open("cuda")

        assert report.library == "broken"
        assert "CUDA_PATH=/one and CUDA_HOME=/other name different places" in report.library_reason


class TestFork:
    """B07: naming a backend leaves the driver alone, so that a fork is safe; a fork after its first use is named."""

    STUB = """
        #include <unistd.h>
        static int owner;
        static int answer(void) { if (!owner) owner = getpid(); return owner == getpid() ? 0 : 3; }
    """

    def library(self, box: Box) -> None:
        text = self.STUB
        for symbol in _required("cuda"):
            text += f"int {symbol}(int *n) {{ int code = answer(); if (!code && n) *n = 1; return code; }}\n"
        box.set(NBXRT_CUDA_RUNTIME=str(make_library(box.root / "libforked.so", text)))
        box.nvidia()

    def run(self, program: str) -> str:
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
        assert done.stderr == ""
        return done.stdout

    def test_a_child_works_after_its_parent_named_the_backend(self, box: Box) -> None:
        self.library(box)

        said = self.run("""
            import os, nbxrt
            nbxrt.gpu_backend(), nbxrt.detect(), nbxrt.open()
            pid = os.fork()
            if not pid:
                print(nbxrt.gpu_runtime().device_count(), flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
        """)

        assert said == "1\n"

    def test_a_child_of_a_parent_that_used_the_driver_is_told_so(self, box: Box) -> None:
        self.library(box)

        said = self.run("""
            import os, nbxrt
            rt = nbxrt.open()
            rt.device_count()
            pid = os.fork()
            if not pid:
                try: rt.sync()
                except nbxrt.DeviceError as error: print(error, flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
        """)

        assert "forked after the driver was initialised" in said
        assert "spawn" in said


def _required(backend: str) -> list[str]:
    from nbxrt import descriptions

    contract = descriptions.contract()["operations"]
    operations = descriptions.built_in(backend)["operations"]
    return sorted(
        {
            variant[4][0][0]
            for name, (_line, variants) in operations.items()
            if contract[name]["required"]
            for variant in variants
        }
    )


class TestTriton:
    """G07 and the original's pin: Triton is told which backend is here, when that helps and nobody else has."""

    @pytest.fixture
    def triton(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A Triton that may be looked at and must not be imported."""
        home = tmp_path / "site/triton"
        for key in ("nvidia", "amd"):
            (home / "backends" / key).mkdir(parents=True)
        (home / "__init__.py").write_text("raise SystemExit('triton was imported')")
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        return home

    @pytest.fixture
    def nvidia(self, box: Box) -> Box:
        box.runtime("cuda", count=1)
        box.nvidia()
        return box

    @pytest.mark.parametrize("before", [None, ""], ids=["unset", "empty"])
    def test_the_variable_is_set_to_tritons_own_name_and_put_back(
        self, triton: Path, nvidia: Box, before: str | None
    ) -> None:
        if before is not None:
            nvidia.set(TRITON_DEFAULT_BACKEND=before)

        nbxrt.gpu_backend()
        during = os.environ.get("TRITON_DEFAULT_BACKEND")
        nbxrt.reset()

        assert (during, os.environ.get("TRITON_DEFAULT_BACKEND")) == ("nvidia", before)

    def test_a_users_value_is_never_changed(self, triton: Path, nvidia: Box) -> None:
        nvidia.set(TRITON_DEFAULT_BACKEND="amd")

        nbxrt.gpu_backend()
        nbxrt.reset()

        assert os.environ["TRITON_DEFAULT_BACKEND"] == "amd"

    def test_a_key_that_triton_does_not_have_is_not_set(self, triton: Path, nvidia: Box) -> None:
        (triton / "backends/nvidia").rmdir()

        nbxrt.gpu_backend()

        assert "TRITON_DEFAULT_BACKEND" not in os.environ

    def test_a_key_that_another_package_offers_by_an_entry_point_is_one(self, triton: Path, nvidia: Box) -> None:
        (triton / "backends/nvidia").rmdir()
        record = triton.parent / "other-1.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
        (record / "entry_points.txt").write_text("[triton.backends]\nnvidia = other\n")

        nbxrt.gpu_backend()

        assert os.environ["TRITON_DEFAULT_BACKEND"] == "nvidia"

    @pytest.mark.parametrize(("count", "key"), [(1, "nvidia"), (0, None)])
    def test_a_device_that_only_the_runtime_can_tell_is_there_when_it_has_counted_one(
        self, triton: Path, box: Box, count: int, key: str | None
    ) -> None:
        box.runtime("cuda", count=count)
        add_node(box.root, "/dev/dxg")

        nbxrt.gpu_backend()

        assert os.environ.get("TRITON_DEFAULT_BACKEND") == key

    def test_without_triton_or_without_a_device_nothing_is_set(self, box: Box) -> None:
        box.runtime("cuda")

        nbxrt.gpu_backend()
        nbxrt.detect()

        assert "TRITON_DEFAULT_BACKEND" not in os.environ

    def test_the_forced_path_pins_too(self, triton: Path, nvidia: Box) -> None:
        nvidia.set(NBX_GPU_BACKEND="cuda")

        nbxrt.gpu_backend()

        assert os.environ["TRITON_DEFAULT_BACKEND"] == "nvidia"


def test_no_warning_comes_on_a_machine_with_nothing(box: Box) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nbxrt.detect()
        nbxrt.open()

    assert [str(warning.message) for warning in caught] == []

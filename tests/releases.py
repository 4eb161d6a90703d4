"""The vendors' headers and libraries that scripts/setup-wheels.sh fetches, and what each is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nbxrt import verifying

if TYPE_CHECKING:
    from nbxrt.verifying import Result


class Release(NamedTuple):
    """One release of a vendor's interface: its files below the folder of the wheels; `others` are versions by role."""

    backend: str
    version: str
    headers: tuple[str, ...]
    include: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """The version of the runtime, where the vendor's is a number, and those of other roles."""
        runtime = {"runtime": self.version} if self.version[0].isdigit() else {}
        return {**runtime, **dict(self.others)}

    @property
    def name(self) -> str:
        return f"{self.backend} {self.version}"

    def verified(self, wheels: Path, file: Path | str | None = None) -> Result:
        """The backend's file, or another one, beside this release."""
        return verifying.verify(
            file or self.backend,
            headers=[wheels / each for each in self.headers],
            include=[wheels / each for each in self.include],
            libraries=[wheels / each for each in self.libraries],
            version=dict(self.versions),
        )


TRITON = "triton/triton/backends"
NVML_11, NVML_12 = (f"{folder}/nvidia/nvml_dev/include/nvml.h" for folder in ("nvml-11", "nvml"))
NVML_13 = "nvml-13/nvidia/cu13/include/nvml.h"
NCCL, LIBNCCL = "nccl/nvidia/nccl/include/nccl.h", "nccl/nvidia/nccl/lib/libnccl.so.2"
NPU = "torch-npu/torch_npu/include"

RELEASES = (
    Release(
        "cuda", "11.8",
        ("cuda-11/nvidia/cuda_runtime/include/cuda_runtime_api.h", "cuda-11/nvidia/cuda_runtime/include/cuda.h",
         NVML_11, NCCL),
        (f"{TRITON}/nvidia/include",),  # which has what belongs to the compiler's own wheel
        ("cuda-11/nvidia/cuda_runtime/lib/libcudart.so.11.0", LIBNCCL),
    ),
    Release(
        "cuda", "12.9",
        ("cuda-12/nvidia/cuda_runtime/include/cuda_runtime_api.h", f"{TRITON}/nvidia/include/cuda.h", NVML_12, NCCL),
        (f"{TRITON}/nvidia/include", "cccl-12/nvidia/cuda_cccl/include"),
        ("cuda-12/nvidia/cuda_runtime/lib/libcudart.so.12", LIBNCCL),
    ),
    Release(
        "cuda", "13.5",
        ("cuda-13/nvidia/cu13/include/cuda_runtime_api.h", f"{TRITON}/nvidia/include/cuda.h", NVML_13, NCCL),
        (f"{TRITON}/nvidia/include", "cccl-13/nvidia/cu13/include"),
        ("cuda-13/nvidia/cu13/lib/libcudart.so.13", LIBNCCL),
    ),
    Release(
        "hip", "5.2",
        ("debian/usr/include/hip/hip_runtime_api.h",),
        ("debian/usr/include",),
        ("debian/usr/lib/x86_64-linux-gnu/libamdhip64.so.5",),
    ),
    Release(
        "hip", "7.1",
        (f"{TRITON}/amd/include/hip/hip_runtime_api.h", "amd/amdsmi.h", "amd/rccl.h"),
        (f"{TRITON}/amd/include",),
        others=(("management", "26"),),
    ),
    Release(
        "ascend", "ACL 1.17",
        (f"{NPU}/acl/acl_rt.h", f"{NPU}/acl/acl.h", f"{NPU}/acl/error_codes/rt_error_codes.h",
         f"{NPU}/third_party/hccl/inc/hccl/hccl.h"),
        (NPU, f"{NPU}/third_party/hccl/inc"),
    ),
    Release(
        "level_zero", "1",
        ("debian/usr/include/level_zero/ze_api.h", "debian/usr/include/level_zero/zes_api.h"),
        libraries=("debian/usr/lib/x86_64-linux-gnu/libze_loader.so.1",),
    ),
    Release(
        "opencl", "1",
        ("debian/usr/include/CL/cl.h", "debian/usr/include/CL/cl_ext.h"),
        ("debian/usr/include",),
        ("debian/usr/lib/x86_64-linux-gnu/libOpenCL.so.1",),
    ),
)  # fmt: skip

"""Comparing a backend file with the vendor's header, by the system's compiler, and with its library, by the file.

    from nbxrt import verifying

    result = verifying.verify("cuda", headers=["cuda_runtime_api.h"], include=["/usr/local/cuda/include"])
    print(result.ok, result.faults)

Nothing of the vendor's is loaded or called.
"""

from nbxrt.verifying.headers import HeaderError
from nbxrt.verifying.result import Result, Row, State
from nbxrt.verifying.symbols import SymbolsError
from nbxrt.verifying.verify import verify

__all__ = ["HeaderError", "Result", "Row", "State", "SymbolsError", "verify"]

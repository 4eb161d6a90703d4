"""Installed packages offer backends by entry points: found without importing them, and none harms another."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import nbxrt
from copies import run
from nbxrt.catalogue.sources import data_folder

HOME = str(Path(nbxrt.__file__).parents[1])
HOST = (data_folder("backends") / "host.yaml").read_text("utf-8")
TRAP = "raise SystemExit('imported')\n"

TRY = """
import json, sys
import nbxrt
answer = {"metadata": "importlib.metadata" in sys.modules}
try:
    answer["name"] = nbxrt.open(sys.argv[1]).name
except nbxrt.NbxrtError as error:
    answer |= {"error": type(error).__name__, "text": str(error), "cause": type(error.__cause__).__name__}
answer["imported"] = [name for name in sys.modules if name.startswith("acme")]
print(json.dumps(answer))
"""


def backend(name: str) -> str:
    return HOST.replace("name: host", f"name: {name}", 1)


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.here = folder.parent / "here"
        self.folder.mkdir()
        self.here.mkdir()

    def install(self, distribution: str, entry_points: str, **files: str) -> None:
        """A distribution with entry points of our group, and files: `acme__gpu__x` is acme/gpu/x.yaml."""
        info = self.folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[nbxrt.backends]\n{entry_points}\n", "utf-8")
        for path, text in files.items():
            file = self.folder.joinpath(*path.split("__")).with_suffix(".yaml")
            file.parent.mkdir(parents=True, exist_ok=True)
            (file.parent / "__init__.py").write_text(TRAP, "utf-8")
            (self.folder / path.split("__")[0] / "__init__.py").write_text(TRAP, "utf-8")
            file.write_text(text, "utf-8")

    def python(self, code: str, *arguments: str, **environment: str) -> str:
        """What a fresh process prints that has the packages."""
        path = os.pathsep.join([str(self.folder), HOME])
        return run(sys.executable, "-c", code, *arguments, cwd=self.here, PYTHONPATH=path, **environment)

    def open(self, name: str, **environment: str) -> dict[str, object]:
        answer: dict[str, object] = json.loads(self.python(TRY, name, **environment))
        return answer


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


def test_a_packages_backend_is_opened_by_name_and_the_package_is_never_imported(site: Site) -> None:
    """F20: what would raise or exit at import is not imported."""
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))

    answer = site.open("acme")

    assert (answer["name"], answer["imported"]) == ("acme", [])


def test_metadata_is_read_only_for_a_name_that_nothing_else_has(site: Site, tmp_path: Path) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))
    mine = tmp_path / "mine.yaml"
    mine.write_text(backend("mine"), "utf-8")

    assert site.open("host") == {"metadata": False, "name": "host", "imported": []}
    code = TRY.replace('answer = {"metadata": "importlib.metadata" in sys.modules}', "answer = {}").replace(
        'answer["imported"]', 'answer["offers"] = "nbxrt.catalogue.packages" in sys.modules\nanswer["imported"]'
    )
    assert json.loads(site.python(code, "mine", NBXRT_BACKEND_PATH=str(mine)))["offers"] is False
    assert json.loads(site.python(code, "acme"))["offers"] is True


def test_it_can_be_forced_and_is_never_detected(site: Site) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme").replace("kind: cpu", "kind: gpu"))

    said = site.python("import nbxrt; print(nbxrt.gpu_backend())", NBX_GPU_BACKEND="acme")
    detected = site.python("import nbxrt; print([each.name for each in nbxrt.detect().backends])")

    assert said == "acme\n"
    assert "acme" not in detected


def test_list_and_doctor_show_it(site: Site) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))
    code = "import sys; sys.argv[0] = 'nbxrt'; from nbxrt.cli import main; main()"

    assert "\nacme        Host memory" in site.python(code, "list")
    assert '"acme"' in site.python(code, "list", "--json")


def test_a_built_in_name_is_never_replaced(site: Site) -> None:
    """F20."""
    site.install("acme-gpu", "host = acme.gpu", acme__gpu__host=HOST.replace("title: Host memory", "title: Theirs"))

    assert site.python("import nbxrt; print(nbxrt.open('host').title)") == "Host memory\n"


@pytest.mark.tier("all")
def test_the_list_says_that_an_offer_is_passed_over(site: Site) -> None:
    site.install("acme-gpu", "host = acme.gpu", acme__gpu__host=HOST)
    code = "import sys; sys.stderr = sys.stdout; sys.argv[1:] = ['list']; from nbxrt.cli import main; main()"

    assert (
        "warning: `host` of the entry point `host = acme.gpu` of acme-gpu 1.0 is not used: "
        "the name is that of backends/host.yaml (built in)\n"
    ) in site.python(code)


def test_a_file_extends_what_a_package_offers(site: Site, tmp_path: Path) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))
    mine = tmp_path / "mine.yaml"
    mine.write_text("contract: 1\nname: mine\nextends: acme\ntitle: Mine\n", "utf-8")

    assert site.python("import nbxrt, sys; print(nbxrt.open(sys.argv[1]).title)", str(mine)) == "Mine\n"


def test_a_packages_file_may_extend_a_built_in_backend(site: Site) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme="contract: 1\nname: acme\nextends: host\n")

    assert site.open("acme")["name"] == "acme"


#: The kinds differ in their words alone, and each starts several processes.
SLOW = pytest.mark.tier("all")


@pytest.mark.parametrize(
    ("value", "reason", "cause"),
    [
        ("gone.backends", "no package `gone` is installed", "ModuleNotFoundError"),
        pytest.param("single", "`single` is a module, and no folder", "NotADirectoryError", marks=SLOW),
        pytest.param("acme.single", "`acme.single` is a module, and no", "NotADirectoryError", marks=SLOW),
        pytest.param("acme.gone", "there is no such file or folder", "FileNotFoundError", marks=SLOW),
        pytest.param("acme.empty", "the folder holds no `*.yaml` file", "FileNotFoundError", marks=SLOW),
        pytest.param("acme.gpu:make", "`acme.gpu:make` is not the dotted name of a", "ValueError", marks=SLOW),
        pytest.param("../../etc", "is not the dotted name", "ValueError", marks=SLOW),
    ],
    ids=[
        "a package that is gone",
        "a module",
        "a module of a package",
        "a folder that is gone",
        "an empty folder",
        "an object",
        "a path",
    ],
)
def test_a_broken_entry_point_harms_no_other_and_is_named_when_it_is_selected(
    site: Site, value: str, reason: str, cause: str
) -> None:
    """F20."""
    site.install("acme-gpu", f"broken = {value}\nacme = acme.gpu", acme__gpu__acme=backend("acme"))
    (site.folder / "acme" / "empty").mkdir()
    for module in (site.folder / "single.py", site.folder / "acme" / "single.py"):
        module.write_text(TRAP, "utf-8")

    answer = site.open("broken")

    assert (answer["error"], answer["cause"]) == ("DescriptionError", cause)
    text = str(answer["text"])
    assert f"the entry point `broken = {value}` of acme-gpu 1.0 cannot be used" in text
    assert reason in text
    assert site.open("acme")["name"] == "acme"


def test_invalid_yaml_of_a_package_names_the_entry_point(site: Site) -> None:
    """F20."""
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme="name: [\n", acme__gpu__other=backend("other"))

    text = str(site.open("acme")["text"])

    assert "not valid YAML" in text
    assert "offered by the entry point `acme = acme.gpu` of acme-gpu 1.0" in text
    assert site.open("other")["name"] == "other"


def test_a_faulty_description_of_a_package_names_its_file(site: Site) -> None:
    site.install(
        "acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme").replace("priority: 1000", "priority: x")
    )

    text = str(site.open("acme")["text"])

    assert str(site.folder / "acme" / "gpu" / "acme.yaml") in text
    assert "offered by the entry point `acme = acme.gpu` of acme-gpu 1.0" in text


def test_two_packages_that_offer_one_name_are_both_named(site: Site) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))
    site.install("other-gpu", "acme = acmeother", acmeother__acme=backend("acme"))

    text = str(site.open("acme")["text"])

    assert "two packages offer `acme`" in text
    assert "acme-gpu 1.0" in text
    assert "other-gpu 1.0" in text


@pytest.mark.tier("all")
def test_a_broken_offer_takes_nobodys_place_and_a_file_that_is_offered_twice_is_one(site: Site) -> None:
    site.install("acme-old", "acme = gone.backends")
    site.install("acme-gpu", "acme = acme.gpu\nagain = acme.gpu", acme__gpu__acme=backend("acme"))

    assert site.open("acme")["name"] == "acme"


def test_damaged_metadata_harms_nobody(site: Site) -> None:
    """F20: and `import nbxrt` is silent."""
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))
    (site.folder / "damaged-1.0.dist-info").mkdir()
    (site.folder / "damaged-1.0.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe[nbxrt\x00")

    assert site.open("acme")["name"] == "acme"
    assert site.python("import nbxrt") == ""


def test_the_current_directory_offers_nothing(site: Site) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))

    said = run(sys.executable, "-c", TRY, "acme", cwd=site.folder, PYTHONPATH=HOME)

    assert json.loads(said)["error"] == "BackendNotFoundError"


def test_an_unknown_name_lists_what_packages_offer(site: Site) -> None:
    site.install("acme-gpu", "acme = acme.gpu", acme__gpu__acme=backend("acme"))

    assert "did you mean `acme`?" in str(site.open("acne")["text"])

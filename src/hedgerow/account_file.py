"""The account file: a TOML list of mechanisms, priced together."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from pydantic import Field

from hedgerow.errors import SpecError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.privacy.budget import Epsilon, EpsilonDelta
from hedgerow.privacy.profile import Guarantee, Profile, compose, read_profile
from hedgerow.release.manifest import read_manifest
from hedgerow.toml_file import Number, Section, parse, within


class UseSection(Section):
    """``[[use]]``: a mechanism, or a guarantee, and how often it is used."""

    mechanism: Literal["discrete-gaussian", "discrete-laplace", "guarantee"]
    sigma2: Number | None = None
    scale: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    times: int = 1
    shift: int = 1


class AccountFile(Section):
    """A list of mechanisms to account for."""

    use: list[UseSection] = Field(min_length=1)


def read_account(path: Path) -> Profile:
    """The profile of a TOML list of mechanisms, or of a release (its directory or manifest)."""
    if path.is_dir() or path.suffix == ".json":
        manifest = read_manifest(path if path.is_dir() else path.parent)
        return read_profile(manifest["plan"]["guarantee"])
    file = parse(path, AccountFile)
    return compose(within(f"[[use]] {i}", _use, use) for i, use in enumerate(file.use, start=1))


def _use(use: UseSection) -> tuple[Guarantee, int, int]:
    wanted = {
        "discrete-gaussian": ({"sigma2"},),
        "discrete-laplace": ({"scale"},),
        "guarantee": ({"epsilon"}, {"epsilon", "delta"}),
    }[use.mechanism]
    keys = ("sigma2", "scale", "epsilon", "delta")
    given = {key: getattr(use, key) for key in keys if getattr(use, key) is not None}
    if set(given) not in wanted:
        names = " or ".join(" and ".join(sorted(names)) for names in wanted)
        raise SpecError(f"{use.mechanism} takes {names}, got {', '.join(given) or 'nothing'}")
    kinds: dict[tuple[str, ...], Callable[..., Guarantee]] = {
        ("sigma2",): DiscreteGaussian,
        ("scale",): DiscreteLaplace,
        ("epsilon",): Epsilon,
        ("epsilon", "delta"): EpsilonDelta,
    }
    return kinds[tuple(given)](*given.values()), use.times, use.shift

"""`fastrank warmup`."""

from __future__ import annotations

import click


@click.command(
    short_help="Compile everything once, into the cache.",
    epilog="""\b
Examples:
  fastrank warmup
  NUMBA_CACHE_DIR=/var/cache/fastrank fastrank warmup      # a place of your own, such as in a container image""",
)
def warmup() -> None:
    """Compile everything once, into the cache, so that no later run has to.

    Takes about a minute on a fresh machine, and a second when all is there. NUMBA_CACHE_DIR chooses the place.
    """
    from fastrank.clicks import warming
    from fastrank.comparison import resampling
    from fastrank.engine.warm import warm_up

    resampling.compile_kernels()
    warming.compile_kernels()
    done = warm_up()
    if done.jit_is_off:
        click.echo("Nothing to compile: NUMBA_DISABLE_JIT is set, so kernels run as plain Python.")
        return
    click.echo(f"{done.n_compiled} kernels compiled and {done.n_loaded} found in the cache, in {done.seconds:.1f} s.")
    if done.cache is None:
        click.echo("No cache can be written, so the next run compiles again: set NUMBA_CACHE_DIR to a folder that can.")
    else:
        click.echo(f"The cache lies below {done.cache}")

"""Benchmarks of Muster beside its peers. Standard library only; peers have environments of their
own (bench/peers/). Start with bench/run --list."""

"""The model file of trainings on clicks whose end bytes tests compare between places."""

from __future__ import annotations

MODEL = """
inputs: {label: int, I1: {type: float, default: 0}, C1: {type: string, default: ""}, C2: {type: string, default: ""}}
label: label
columns:
  I1: {numeric: I1, log1p: true}
  C1: {hash: C1, buckets: 1000}
  C2: {hash: C2, buckets: 1000}
  e: {embedding: C2, dimension: 8}
model:
  type: wide_deep
  linear: {columns: [C1, C2]}
  dnn: {columns: [I1, e], hidden_units: [16]}
train: {batch_size: 50, shuffle: true, seed: 3}
"""

"""Distillation: work orders for what rules cannot judge, and their answers by agents and people."""

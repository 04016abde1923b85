"""Plots: matplotlib for files, without a window and without a complaint where its cache cannot be written."""

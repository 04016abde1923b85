"""Questionnaires as data: items, scales and answers, for studies and for ratings."""

"""Rating a recording afterwards: several annotators, seven dimensions, a rationale for each."""

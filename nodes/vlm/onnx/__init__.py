"""A vision-language model in this process, by ONNX Runtime.

- the node: `vlm`, with `request` (its questions, each in a thread) and `eyes` (question and image in, answer out)
- the model: `folder` (its files), `parts`, `model` (the parts as one), `words` (its tokens), `answer_script`
"""

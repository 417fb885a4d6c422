"""Asks a model ten plain questions through its chat template, here and in llama.cpp.

    cargo build --release -p correx-candle --example peer
    python tests/peer/chat.py target/release/examples/peer MODEL

The prompts must be the same ids. The answers are greedy and shown side by side: computed in
integers they may part at a close call (`logits.py` says why), so a person judges them.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

TOKENS = 48

QUESTIONS = [
    "What is the capital of France?",
    "How many days are in a week?",
    "What is 7 plus 5?",
    "Name three primary colours.",
    "What do bees make?",
    "Who wrote Romeo and Juliet?",
    "What is the opposite of cold?",
    "Write one short sentence about the sea.",
    "Which planet is closest to the sun?",
    "What is water made of?",
]


def peers(model, question):
    """The peer's prompt and answer."""
    data = model.metadata
    text = lambda key: model.detokenize([int(data[key])], special=True).decode() if key in data else ""
    formatter = Jinja2ChatFormatter(
        template=data["tokenizer.chat_template"],
        eos_token=text("tokenizer.ggml.eos_token_id"),
        bos_token=text("tokenizer.ggml.bos_token_id"),
    )
    prompt = formatter(messages=[{"role": "user", "content": question}]).prompt
    begins = data.get("tokenizer.ggml.add_bos_token") == "true"
    ids = model.tokenize(prompt.encode(), add_bos=begins, special=True)
    answer = model.create_completion(ids, max_tokens=TOKENS, temperature=0, repeat_penalty=1.0)
    return ids, answer["choices"][0]["text"]


def main():
    program, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        questions = Path(folder) / "questions.json"
        questions.write_text(json.dumps(QUESTIONS))
        ours = json.loads(
            subprocess.run(
                [program, "chat", model, str(questions), str(TOKENS)], check=True, stdout=subprocess.PIPE
            ).stdout
        )
    peer = llama_cpp.Llama(model, n_ctx=512, n_gpu_layers=0, verbose=False)
    same_prompts = same_answers = 0
    for question, own in zip(QUESTIONS, ours):
        ids, answer = peers(peer, question)
        same_prompts += ids == own["prompt"]
        same_answers += answer.strip() == own["text"].strip()
        print(f"{question}\n  peer: {answer.strip()!r}\n  own:  {own['text'].strip()!r}")
    print(f"{same_prompts} of {len(QUESTIONS)} prompts and {same_answers} answers are the same")
    sys.exit(same_prompts != len(QUESTIONS))


if __name__ == "__main__":
    main()

"""Makes tokenizer_reference.json, a small byte-pair tokeniser trained by Hugging
Face's tokenizers (0.23, from PyPI), and tokenizer_reference_ids.json, texts and
the ids that it gives them."""
import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = """It's the reader's turn: they've read it, we'll read on, I'm done, you'd
say.  Reading   is reading; the reader reads 12 of 345 pages (or 3.14).
the there then them this that those these other another weather leather
Größe, größer, am größten. 你好,世界! Привет, мир. naïve café\t\ttabs
"""
TEXTS = [
    "", " ", "  ", "\n", "a", " a", "  a", "   a", "a ", "a  ", "the reader",
    "It's we'll I'm you'd they've don't readers' 'tis 'll 's",
    " 's 'S'RE", "12345 x12y ½ ² Ⅷ ٣", "größten  Größe", "你好,世界!",
    "tabs\t\tand\r\n\r\nlines\n", "\u00a0x \u00a0 y\u2003z\u3000 \u0085 q",
    "\u200bzero \u200dwidth \ufeffbom", "e\u0301 cafe\u0301", "👍🏽 👨‍👩‍👧 🇩🇪",
    "____ -- !!! ...a", "<|end|>", "x<|end|>y", "\x00\x01\x7f", "ǅ ʰ ª º ـ",
    " \n \n  the\n", "\x1c\x1d\x1e\x1f x", "\u180e m \u2028 n \u2029 o",
]

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator([TEXT], trainers.BpeTrainer(
    vocab_size=400, special_tokens=["<|pad|>"], show_progress=False,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.save("tokenizer_reference.json", pretty=False)
with open("tokenizer_reference_ids.json", "w") as file:
    file.write("[\n" + ",\n".join(
        json.dumps([text, tokenizer.encode(text).ids]) for text in TEXTS) +
        "\n]\n")

"""serving-bench: what does a decoding method, a transformers revision or a serve configuration buy?"""

__version__ = "0.1.0"

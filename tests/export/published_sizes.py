"""What the papers and model cards of the published models say of their size."""

# Total and active parameters in millions as published (rounded so), cached values of a token.
PUBLISHED = {
    "jetmoe-8b": ("8522", "2331", 98304),
    "molm-350m-4b": ("4143", "366", 24576),
    "molm-700m-4b": ("4143", "668", 24576),
    "molm-700m-8b": ("8182", "681", 49152),
    "moeut-44m": ("44.3", "38", 10496),
    "moeut-126m": ("125.7", "85", 13824),
    "moeut-244m": ("243.3", "149", 18432),
    "moeut-318m": ("318.1", "195", 24576),
    "moeut-727m": ("727.4", "451", 46080),
    "moeut-1b": ("1040.3", "646", 55296),
    "switchhead-47m": ("47.2", "39", 4864),
    "switchhead-262m": ("262.4", "213", 16128),
    "switchhead-262m-wikitext": ("262.5", "210", 9504),
    "switchhead-45m-rope": ("44.5", "38", 4096),
    "switchhead-243m-rope": ("243.3", "206", 14400),
    "switchhead-41m-enwik8": ("41", "34", 5376),
    "switchall-47m": ("46.9", "18", 4864),
    "switchall-259m": ("259.5", "78", 16128),
}


def rounded(count, like):
    """`count` in millions, with as many decimals as the published number."""
    decimals = len(like.partition(".")[2])
    return f"{count / 1e6:.{decimals}f}"

"""Texts that careless handling changes or breaks on."""

KEPT = {
    "family of emoji": "👩‍👩‍👧‍👦 and 🏳️‍🌈, 🇵🇱",
    "right to left": "أحب الشاي بالنعناع \u200f(مرتين)",
    "overrides of direction": "safe \u202etxt.exe\u202c \u2066inside\u2069",
    "decomposed": "Zoe\u0308",
    "composed": "Zoë",
    "many combining marks": "o" + "\u0301\u0323\u0489" * 20,
    "Hangul in parts": "\u1112\u1161\u11ab",
    "NUL": "nul \x00 inside \x00",
    "controls": "\x01\x08\x0b\x1b[31mred\x7f\x80\x9f",
    "line ends": "a\r\nb\rc\nd\u2028e\u2029f\x85g",
    "white space around": " \t x \u3000\n",
    "byte order mark": "\ufeffx\ufeff",
    "noncharacters": "\ufdd0\ufffe\uffff\U0010ffff",
    "replacement character": "\ufffd",
    "private use": "\ue000\U000f0000",
    "tags": "\U000e0001\U000e0065\U000e006e",
    "escape of a surrogate as text": "\\ud800 \\u0000",
    "markup": "</script><!-- --> ]]> <b>&amp;%3C</b>",
    "template": "{{ 7*7 }} {% load x %} ${7*7} #{7*7}",
    "SQL": "'); DROP TABLE memory_memory; -- \\",
    "format": "%s %(name)s {0} {x.__class__}",
    "JSON": '{"text": "\\""}',
    "Turkish i": "İI\u0131i ẞß ﬁ",
    "one character": "x",
}
WITHOUT_NUL = {name: text for name, text in KEPT.items() if "\x00" not in text}
# Not characters: JSON can write them, UTF-8 cannot.
LONE_SURROGATES = ('"\\ud800"', '"a\\udfffb"', '"\\udc00\\ud800"')

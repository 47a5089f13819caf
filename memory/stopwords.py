"""Function words of the languages we stem: they carry no content, and they tell the languages apart.

Short lists on purpose: only words that hardly ever are what a question is about.
"""

ENGLISH = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can
    could couldn did didn do does doesn doing don for from get go had has hasn have haven he her
    here him his how i if in into is isn it its just let me more most my no not of on one or other
    our out over own please s she should so some such t tell than that the their them then there
    these they this those to too us use very was wasn we were what when where which while who whom
    whose why will with won would wouldn you your
    """.split()  # noqa: SIM905 - a list this long is read as prose
)
GERMAN = frozenset(
    """
    aber alle als also am an auch auf aus bei bin bis bist bitte da damit das dass dein deine dem
    den der des dich die dies diese dieser dieses dir doch du durch ein eine einem einen einer eines
    er es euch euer für habe haben hast hat hatte ich ihm ihn ihr ihre im in ist ja kann kein keine
    können man mein meine meinem meinen meiner mich mir mit muss nach nicht noch nur ob oder sein
    seine sich sie sind so soll um und uns unser unsere vom von vor wann war warum was weil welche
    welchem welchen welcher welches wenn wer werden wie wir wird wo zu zum zur über
    """.split()  # noqa: SIM905 - a list this long is read as prose
)
SPANISH = frozenset(
    """
    a al algo ante antes aquí así aunque como con contra cual cuando cuál cuándo cuánto de del desde
    donde dónde e el ella ellas ellos en entre era es esa ese eso esta estas este esto estos estoy
    está están fue ha han hasta hay he la las le les lo los me mi mis muy más mí nada ni no nos o
    para pero por porque que quién qué se sea ser si sin sobre son soy su sus sí también te tengo ti
    tiene todo tu tú un una uno unos y ya yo él
    """.split()  # noqa: SIM905 - a list this long is read as prose
)
FRENCH = frozenset(
    """
    ai alors as au aux avec avez avons ce cela ces cet cette chez comme comment d dans de des dont
    du elle elles en est et eu il ils j je l la le les leur leurs lui là m ma mais me mes moi mon n
    ne nos notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle quelles quels
    qui s sa sans se ses si son sont suis sur t ta te tes toi ton tu un une vos votre vous y à était
    """.split()  # noqa: SIM905 - a list this long is read as prose
)

BY_LANGUAGE = {"english": ENGLISH, "german": GERMAN, "spanish": SPANISH, "french": FRENCH}

"""What reviewers say about four kinds of product: the words of `make_reviews`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """One domain's own language; ``{thing}``, ``{part}``, ``{who}``, ``{month}`` are slots."""

    things: tuple[str, ...]  # what is sold
    parts: tuple[str, ...]  # what it has, neither good nor bad
    facts: tuple[str, ...]  # sentences without opinion
    praise: tuple[str, ...]  # opinions that mean something in this domain alone
    complaints: tuple[str, ...]


def _names(text: str) -> tuple[str, ...]:
    """Split at commas."""
    return tuple(text.split(", "))


def _phrases(text: str) -> tuple[str, ...]:
    """Take one phrase a line."""
    return tuple(line.strip() for line in text.strip().splitlines())


PEOPLE = _names(
    "my wife, my husband, my daughter, my son, my sister, "
    "my neighbour, a friend, my mother, my brother, a colleague"
)

MONTHS = _names(
    "January, February, March, April, May, June, July, August, September, October, November, December"
)

# Opinions that everybody understands, in every domain.
GOOD = _names(
    "excellent, wonderful, great, fantastic, superb, perfect, amazing, lovely, "
    "outstanding, brilliant, delightful, impressive, terrific, splendid, marvellous, pleasing"
)
BAD = _names(
    "terrible, awful, horrible, poor, disappointing, dreadful, useless, lousy, "
    "pathetic, frustrating, worthless, annoying, mediocre, abysmal, appalling, unacceptable"
)
OPINIONS = _phrases("""
    To me it is {word}.
    In short, {word}.
    Simply {word} from start to finish.
    This is one {word} {thing}.
    {Word} is the right word for it.
    My verdict: {word} and once more {word2}.
    We all found it {word}.
    The {part} is {word}, the rest {word2}.
    How {word} this {thing} is.
    {Who} called the {part} {word}.
""")
LIKING = _phrases("""
    I love it.
    We really love this {thing}.
    I recommend it to everyone.
    Highly recommended.
    I am very happy with it.
    Best purchase of the year.
    Thank you, we are delighted.
    I enjoy it every single time.
    {Who} was thrilled and so am I.
    It deserves all five stars.
""")
DISLIKING = _phrases("""
    I hate it.
    I regret this {thing}.
    Stay away from this one.
    What a waste of money.
    I want a refund.
    Worst purchase of the year.
    Sorry, we are disappointed.
    I sent it back and complained.
    {Who} was upset and so am I.
    It hardly deserves one star.
""")
COMMON_FACTS = _phrases("""
    I ordered this {thing} in {month}.
    It arrived in a brown cardboard box.
    This {thing} was a gift for {who}.
    {Who} already has a similar {thing}.
    I looked at the {part} first.
    The {part} is mentioned in the description.
    I have had it since {month}.
    It was delivered on time to our address.
    I paid the usual price for a {thing} of this kind.
    {Who} asked me about the {part}.
""")

BOOKS = Product(
    things=_names("book, novel, paperback, thriller, biography, memoir, trilogy, hardcover"),
    parts=_names("plot, prologue, ending, dialogue, narrator, opening chapter, setting, heroine"),
    facts=_phrases("""
        The author grew up in a fishing village.
        The {part} takes place before the war.
        It has four hundred pages and a map at the front.
        I read it on the train over a weekend.
        The publisher also prints the earlier volumes.
        Our reading group chose this {thing} for {month}.
        The {part} is told by an old librarian.
        The cover shows a lighthouse at dusk.
        The translation follows the second edition.
    """),
    praise=_phrases("""
        A real page-turner.
        I could not put it down and stayed up past midnight.
        The {part} is gripping and the suspense builds.
        Three-dimensional characters jump off each page.
        The prose is lyrical and luminous.
        A spellbinding {part} with hidden depths.
        It moved me to tears and to laughter.
        The {part} is masterfully woven into history.
        Richly drawn people, vivid landscapes.
        Thought-provoking and beautifully written.
        I devoured all the chapters in one sitting.
        A clever twist ties the threads together.
        The storyteller has wit and an eye for detail.
        A haunting {part} lingers long after the last line.
        Deeply researched and full of insight.
        An instant classic for any shelf.
    """),
    complaints=_phrases("""
        The {part} is predictable and full of cliches.
        Cardboard characters recite wooden speeches.
        I skimmed the second half and skipped the epilogue.
        The prose is turgid and overwritten.
        Typos in abundance and sloppy editing.
        The {part} drags on and goes nowhere.
        A contrived coincidence resolves the mystery.
        It stoops to preachy lectures.
        I dozed off around page ninety.
        The author rehashes an earlier series.
        Stilted sentences and tedious descriptions.
        Gaping plot holes and an implausible {part}.
        The {part} is shallow and the humour juvenile.
        A meandering subplot is left dangling.
        Pretentious rambling passes for philosophy here.
        I abandoned it halfway through out of boredom.
    """),
)

KITCHEN = Product(
    things=_names("kettle, toaster, blender, frying pan, saucepan, coffee maker, mixer, rice cooker"),
    parts=_names("lid, handle, base, knob, heating element, spout, cord, tray"),
    facts=_phrases("""
        It stands on the counter next to the stove.
        The {part} is made of steel and black plastic.
        We cook for four people on weekdays.
        It holds one and a half litres of water.
        The recipe booklet has soups, stews and porridge.
        We replaced our old {thing} from the nineties.
        The {part} comes in red and in cream.
        I use it for breakfast and sometimes for dinner.
        The {part} has a diameter of twenty centimetres.
    """),
    praise=_phrases("""
        It is energy efficient and boils in two minutes.
        Eggs slide right off the nonstick surface.
        It heats evenly without scorching.
        The {part} is dishwasher safe and wipes clean.
        Whisper quiet even at full speed.
        It browns bread to a golden crisp.
        Soup stays piping hot for hours.
        The {part} stays cool to the touch.
        Razor sharp blades crush ice into snow.
        A sturdy, heavy gauge {part} with fine balance.
        It pours without dripping.
        Compact and stackable for a tiny apartment.
        It simmers gently and keeps vegetables crunchy.
        Fluffy rice and creamy smoothies come out daily.
        The {part} locks snugly and seals tight.
        Cleanup is effortless, just rinse under the tap.
    """),
    complaints=_phrases("""
        It leaks all over our worktop.
        Its coating flakes into omelettes.
        A {part} that rusted after two washes.
        It burns toast but leaves dumplings raw.
        The {part} cracked when heated.
        It smells of melting plastic.
        The {part} wobbles and tips over.
        It trips fuses and sparks.
        Everything sticks and must be scrubbed.
        Blades went blunt and smear tomatoes.
        Water dribbles down the {part}.
        It warped on a low flame.
        The motor overheats and stalls in thick dough.
        Our glass jug shattered to splinters.
        The {part} is scalding and blistered my fingers.
        Limescale and grime collect under the {part}.
    """),
)

ELECTRONICS = Product(
    things=_names("camera, router, headset, tablet, speaker, keyboard, monitor, radio"),
    parts=_names("screen, battery, firmware, remote control, charger, antenna, menu, touchpad"),
    facts=_phrases("""
        I connected it to my laptop with a cable.
        The {part} has a blue light on the left.
        It runs on two rechargeable cells.
        The manual is printed in six languages.
        I compared it with the model from last year.
        The {part} sits behind a small door.
        It has three ports and a slot for memory cards.
        Our office uses the same {thing} in every room.
        The {part} is listed on the specification sheet.
    """),
    praise=_phrases("""
        Plug and play, it was recognised instantly.
        Crystal clear sound, rich bass.
        The {part} is responsive and intuitive.
        It holds a charge for days.
        Pictures are crisp with accurate colours.
        Rock solid reception in the basement.
        Blazing fast transfers and zero lag.
        The {part} is bright and readable in sunlight.
        Bluetooth pairing took seconds.
        Sleek, slim and featherweight.
        Noise cancelling blocks the engine hum.
        The {part} syncs seamlessly with my phone.
        Plenty of bandwidth to stream without buffering.
        Ergonomic keys and a tactile click.
        Autofocus is snappy even in dim light.
        Future proof thanks to regular updates.
    """),
    complaints=_phrases("""
        It freezes and needs a reboot.
        Dead pixels appeared in one corner.
        The signal drops each hour.
        The {part} drains overnight.
        Static and hiss on all channels.
        Drivers crash my computer.
        Tech support read to us from a script.
        The {part} is laggy and unresponsive.
        Images are grainy, blurry, washed out.
        It became a brick after an update.
        A {part} with a bent connector.
        Tinny sound that distorts at medium volume.
        It disconnects and forgets the password.
        Proprietary cables and bloated software.
        The {part} flickers, then turns black.
        Error codes flash and the warranty expired.
    """),
)

CAMPING = Product(
    things=_names(
        "tent, sleeping bag, backpack, rain jacket, lantern, hammock, camping stove, pair of boots"
    ),
    parts=_names("zipper, strap, groundsheet, buckle, hood, lining, pole, side pocket"),
    facts=_phrases("""
        We walked from the lake to the ridge in {month}.
        The {part} is green with an orange border.
        I carried it for six days along the coast.
        It packs into a bag the size of a loaf.
        Our scout group owns nine of them.
        The {part} is stitched to the inside.
        The campsite was at two thousand metres.
        We slept in it near a river in Norway.
        The {part} can be adjusted on both sides.
    """),
    praise=_phrases("""
        Waterproof, we stayed bone dry in a downpour.
        It sets up in minutes, even in the dark.
        Toasty warm on a frosty night.
        The {part} is rugged and tear resistant.
        Breathable fabric wicks away sweat.
        It withstood gale force gusts on the summit.
        Ultralight, I forgot it was on my shoulders.
        The {part} glides smoothly with gloves on.
        Roomy vestibule and generous headroom.
        Well padded hips and no blisters.
        Reinforced seams shrug off brambles.
        The {part} dries in an hour of breeze.
        Mosquito proof mesh and clever vents.
        Grippy soles cling to slick granite.
        The {part} survived a whole season of abuse unscathed.
        It lights at the first strike, whatever the wind.
    """),
    complaints=_phrases("""
        Stitches ripped on our first hike.
        We woke up in a puddle, soaked.
        The {part} snagged and jammed.
        Condensation rained on us before dawn.
        A pole snapped under mild snowfall.
        I shivered till morning at ten degrees.
        The {part} frayed and came undone.
        It chafes and digs into my collarbone.
        Treads peeled away on gravel.
        Mildew spread over the {part}.
        Stakes bend in firm soil.
        Bulky and cumbersome, it weighs a ton.
        A {part} tore loose on a twig.
        Down feathers leak out of the {part}.
        Drizzle seeped through at the elbows.
        It deflated slowly and sagged to the ground.
    """),
)

PRODUCTS = {"books": BOOKS, "kitchen": KITCHEN, "electronics": ELECTRONICS, "camping": CAMPING}

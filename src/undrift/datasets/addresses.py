"""Addresses of the public data sets, and the checksums that are known of them.

The SHA-256 of a file stands here where it is that of the copy on which the figures of ``paper/`` were
measured. Of the archives of 2007 no checksum has been published, and none is made up: they are trusted on
first use (`undrift.datasets.download`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_SENTIMENT = "https://www.cs.jhu.edu/~mdredze/datasets/sentiment"
# copies that Ganin et al. (2016) and Chen and Cardie (2018) keep beside their code
_DANN = "https://raw.githubusercontent.com/GRAAL-Research/domain_adversarial_neural_network/master/data"
_MAN = "https://raw.githubusercontent.com/ccsasuke/man/7ac8140b0bb561ac256cea439116b0d59bed5684/data/fdu-mtl"

_AMAZON_BOW = {
    "books_test.svmlight": "fe4605c7dcf0e0a9410fd2a32f247caaf9abb352cc6e4c3e0f400853163ad9c4",
    "books_train.svmlight": "317f9a2ec34b81de770b63a84d8c5cc2dc16bd0be6e079d2ff5b5bad5213ea19",
    "dvd_test.svmlight": "4fe1b1a15010f78d8d0c49fe362d35fd4677463a45f1ac02a9f410ae1e638060",
    "dvd_train.svmlight": "95f602aa08bf6b55758f7b0b18df3882fe30acb11987ee60b6b4bb3c44cba733",
    "electronics_test.svmlight": "641783bc941839c3a111d3488a1b7e3bd820a61ec14a129e7429b47703aa961d",
    "electronics_train.svmlight": "7d0061f03ff3827e4f8036b051b5e5828fddc0cd115aa5b212cd28d624dc14e4",
    "kitchen_test.svmlight": "e1502b97a824eb12314be4447394fa736fecb781c0724e6529cd6733ac7ff6d8",
    "kitchen_train.svmlight": "a70b5ebfe1413e0e16280360905f5c3b64389c435cd20c0165dc9d7f293b31b5",
}

# ten of its sixteen domains, which are those of paper/multi.toml
_FDU_MTL = {
    "baby.task.test": "8763bb4b8bbf83b93b6aab03706719fc742fb7d89830a6bd95ea1c2490ea58f7",
    "baby.task.train": "0d884186f3aef0e12dafac0a875887fe631de0df992b15158ab177763882bf57",
    "baby.task.unlabel": "f4f2be61dddc8165ba40d9fc90d51a21c0c9d1f4b6eaa20c93fd3f9d9a8c95e2",
    "books.task.test": "b451ac03e48b599bf35dd1a450158389e1ac9018950e95c631053ac14a5b10ad",
    "books.task.train": "40c4c5971165b9e0a509a60472c3bf06c8e1430d4944833141eb3c34d986b65e",
    "books.task.unlabel": "5121a335a736523b5bd0dc47e05da2b085bf6f42aec2ca20ba7142d620241563",
    "camera_photo.task.test": "3fdea0837d6c41f04720dce8d2e690bbdeb5019ecac749f8f38472ac1dcfa439",
    "camera_photo.task.train": "425bf93c303b2f38d2f53649508ea9e55d0114679ecb00fda5c2c15ebbe9e708",
    "camera_photo.task.unlabel": "d94c682441e8b8a57ff992e244ef0137e07528cd9f3631874f89e2d40aefca04",
    "dvd.task.test": "762e6e030892375eda4f211be58624a3bb6a07c966901c79b803837d21fca4b5",
    "dvd.task.train": "47334240d9cef76ac5f15a10f9082c3d2c6e7f9a9bb0478a3800ede2a0300771",
    "dvd.task.unlabel": "5673c05efcefbf5d38a1ca7e1110cbf58a95e1b02a7a0c729c46f2ba21f223bf",
    "electronics.task.test": "a4d2e7d2a5b8b501a6611e45e1b241aa0d601388b79265cfc94c203cb52f8b8c",
    "electronics.task.train": "bb2f28c4a20e3d075dd71ff049970bd445f4d47bcc8404a68eb03850413a8da7",
    "electronics.task.unlabel": "da24efbec0053b8b8383e530dab3e4a358e75ae2e65d09624c6843bad30f69a8",
    "health_personal_care.task.test": "07f289177da7ebe71f1ac2ee3d5a25f190913e2a11116f0fb55862e01b60a331",
    "health_personal_care.task.train": "384f1ec3d76a2f755844cac4bd7725b86bc79910dae60fc33f133e380f827b4a",
    "health_personal_care.task.unlabel": "70bd1a5b004f2d0edc6bcf0ec6ff5c464f232a351bdcf4b88d4a655d97110355",
    "kitchen_housewares.task.test": "86bcc015f7cfa773880951830ac6161dc2b8717e8a69773ca11a5bd6529b2020",
    "kitchen_housewares.task.train": "df5c9e8473b084a6b252dfbb5e074adcaacb9638a882fee3f20d62d747f45d6f",
    "kitchen_housewares.task.unlabel": "6255b3597385952d45920ce4451291a246ecd997ef75d964ff56fff9e31ad9e7",
    "music.task.test": "54a157c56930b9e587b6b955fe4b2e3258d2f70d0d58ccbbf40a4bfd846ee204",
    "music.task.train": "f0b41243475c16391a02e91d87710ed87d68927d4d77f526a3d2369a98ac572e",
    "music.task.unlabel": "3f2ee8a5becb232368d2bc599ab131778558e05009f8f6957ce2a10106a6ea9a",
    "sports_outdoors.task.test": "77394d7c91fbc69cc16bfaf79f1f945999fe2d8e0fc536f1f79d17089e611f49",
    "sports_outdoors.task.train": "062ac0e2fb04a81c1f06f15b219634810a323a2ee187750e2f479030ebad0326",
    "sports_outdoors.task.unlabel": "7742f40a8b02cd5701a647d6ccaf3746bb863af28cdd6fa0404b507b131b9ca4",
    "video.task.test": "8de7a49ee3001409c9049b1f52949d78c7875cb92e031b43f5cef681dfd341e4",
    "video.task.train": "2867b3e5fffc44132aa61ff49dd608eeacc503b2c9c2133680f0cb4a7a258f3e",
    "video.task.unlabel": "0178424fe97c0203c0f3cabcb31e1370bf656895b76a189ecf1ecfd151abe3f2",
}


@dataclass(frozen=True)
class Source:
    """The addresses of a public data set, and the folder its files go to."""

    name: str  # of the folder that the loader looks for
    urls: tuple[str, ...]  # an archive, or the files themselves
    root: str = ""  # folder inside the archive whose content is wanted; "" for all of it
    sha256: Mapping[str, str] = field(default_factory=dict)  # of files, by name, where it is known


SOURCES = {
    source.name: source
    for source in (
        Source("amazon-bow", tuple(f"{_DANN}/{name}" for name in _AMAZON_BOW), sha256=_AMAZON_BOW),
        Source("processed_acl", (f"{_SENTIMENT}/processed_acl.tar.gz",), "processed_acl"),
        Source("fdu-mtl", tuple(f"{_MAN}/{name}" for name in _FDU_MTL), sha256=_FDU_MTL),
        Source("multidomain", (f"{_SENTIMENT}/unprocessed.tar.gz",)),
        Source("multidomain-acl", (f"{_SENTIMENT}/domain_sentiment_data.tar.gz",)),
    )
}

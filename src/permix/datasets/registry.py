"""What permix knows about public data sets: files, publishers, checksums and licenses.

No data set is part of permix. Archive checksums (md5) are those GroupLens publishes; the sha256 of single
files were computed from public copies of the publishers' files. A data set whose files cannot be checked, or
which no publisher offers in a form that can be read, is not downloaded: the error then says what to get and
where to put it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Source:
    """A public data set and where its files come from.

    Attributes
    ----------
    key : str
        Name, and the folder of its files under ``PERMIX_DATA`` and in the cache.
    title, size, license, citation, homepage : str
        For the reader.
    url : str or None
        What to download: an archive, or a folder of single files; None when there is no download.
    checksum : str or None
        ``"md5:…"`` or ``"sha256:…"`` of the archive.
    files : mapping
        Path of each file in the archive, or below ``url``, to the sha256 of its (decompressed) bytes; empty
        where none is known. Here a file has the last part of its path for a name.
    manual : str
        What to do by hand when there is no download.
    """

    key: str
    title: str
    size: str
    license: str
    citation: str
    homepage: str
    url: str | None = None
    checksum: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    manual: str = ""

    @property
    def members(self) -> dict[str, str]:
        """Path of each file by its name here."""
        return {path.rpartition("/")[2]: path for path in self.files}

    @property
    def sha256(self) -> dict[str, str]:
        """Known checksums by name."""
        return {path.rpartition("/")[2]: digest for path, digest in self.files.items() if digest}


_GROUPLENS = (
    "Research use, with acknowledgement of GroupLens in publications. "
    '"The user may not redistribute the data without separate permission", and no commercial use without '
    "permission; endorsement by the University of Minnesota or GroupLens may not be claimed."
)
_HARPER = (
    "F. M. Harper and J. A. Konstan (2015). The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5(4), 19."
)

SUSHI = Source(
    key="sushi",
    title="Sushi preferences of 5000 people in Japan",
    size="A: 5000 full rankings of 10; B: 5000 rankings of 10 out of 100, and scores 0-4 of the same",
    license=('Any research purpose, citing the authors. "You must not redistribute without our permission."'),
    citation=(
        "T. Kamishima (2003). Nantonac Collaborative Filtering: Recommendation Based on Order Responses. "
        "Proceedings of KDD 2003, 583-588."
    ),
    homepage="https://www.kamishima.net/sushi/",
    url="https://www.kamishima.net/asset/sushi3-2016.zip",
    files={
        f"sushi3-2016/{name}": sha256
        for name, sha256 in {
            "README-en.txt": "deb639156f15fd4ba5659c62bdac752f99e232db3b93b4d3c9f04d86c3a11d56",
            "sushi3.udata": "592d345613b6fbc1d7d126775eb5fb5628619e855c292166250f09651716eca2",
            "sushi3a.5000.10.order": "c56da325c0f58f9a38bafc650ed699b48dd2fb9f6ad64ba61ffc288d1ae4cc24",
            "sushi3b.5000.10.order": "a241c87331e4eabea5841aae0c8a982453cccd01b0a0f3b6a4e9cfabcdab563b",
            "sushi3b.5000.10.score": "f11fe3299b5cc099d70d36ae202f417f96be65454ad79d47d841f7b1efed4c6a",
        }.items()
    },
)


def _movielens(name: str, size: str, md5: str, files: Mapping[str, str]) -> Source:
    return Source(
        key=f"movielens-{name}",
        title=f"MovieLens {name.upper()}",
        size=size,
        license=_GROUPLENS,
        citation=_HARPER,
        homepage=f"https://grouplens.org/datasets/movielens/{name}/",
        url=f"https://files.grouplens.org/datasets/movielens/ml-{name}.zip",
        checksum=f"md5:{md5}",
        files={f"ml-{name}/{file}": sha256 for file, sha256 in files.items()},
    )


MOVIELENS_100K = _movielens(
    "100k",
    "100,000 ratings 1-5 by 943 users of 1682 movies",
    "0e33842e24a9c977be4e0107933c0723",
    {
        "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
        "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
    },
)
MOVIELENS_1M = _movielens(
    "1m",
    "1,000,209 ratings 1-5 by 6040 users of 3706 movies",
    "c4d9eecfca2ab87c1945afe126590906",
    {
        "ratings.dat": "",
        "movies.dat": "c377f92ce09ac7ec6cc78465886cf1848b49c40e1259a83bdeb51d6faa94a26a",
    },
)

JESTER = Source(
    key="jester",
    title="Jester joke ratings, data set 1, part 1",
    size="1,810,455 ratings from -10 to 10 by 24,983 users of 100 jokes",
    license='"Freely available for research use" when the paper of Goldberg et al. is cited.',
    citation=(
        "K. Goldberg, T. Roeder, D. Gupta and C. Perkins (2001). Eigentaste: A Constant Time Collaborative "
        "Filtering Algorithm. Information Retrieval 4(2), 133-151."
    ),
    homepage="https://goldberg.berkeley.edu/jester-data/",
    files={"jester-data-1.csv": ""},
    manual=(
        "the publisher offers jester-data-1.zip with an Excel 97 sheet and no checksum. Download it from "
        "https://goldberg.berkeley.edu/jester-data/, save the sheet as CSV without a header (24,983 lines of "
        "101 numbers; 99 = not rated) under the name jester-data-1.csv (or .csv.gz)"
    ),
)

AP = Source(
    key="ap",
    title="Associated Press articles (the sample of lda-c)",
    size="2246 documents, 10,473 terms, 435,838 tokens",
    license="No license is stated for the corpus, a subset of the TREC AP collection; for research only.",
    citation="D. M. Blei, A. Y. Ng and M. I. Jordan (2003). Latent Dirichlet Allocation. JMLR 3, 993-1022.",
    homepage="https://www.cs.columbia.edu/~blei/lda-c/",
    url="https://www.cs.columbia.edu/~blei/lda-c/ap.tgz",
    files={
        "ap/ap.dat": "ef1003dad74df696cdd3bab85e7c1d20a3eb1494a9e847e899224894d5ccf6d9",
        "ap/vocab.txt": "fbf0d0f836cb2b0360bd3cae0f71c2f34b140b1dd8dd0d0bdb618a64704337f6",
    },
)

APA_1980 = Source(
    key="apa1980",
    title="American Psychological Association, presidential election 1980",
    size="15,449 ballots over 5 candidates, 5738 of them full",
    license='Published with the R package PLMIX under "GPL (>= 2)".',
    citation=(
        "P. Diaconis (1988). Group Representations in Probability and Statistics. IMS; "
        "C. Mollica and L. Tardella (2017). Bayesian Plackett-Luce mixture models for partially ranked data. "
        "Psychometrika 82(2), 442-458."
    ),
    homepage="the R package PLMIX, data set d_apa",
    files={"apa1980_top_orderings.csv": ""},
    manual=(
        "the ballots are the data set d_apa of the R package PLMIX, a 15,449 x 5 matrix of orderings with 0 "
        "for places left empty. Write its distinct rows with their counts as CSV with the header "
        "pos1,pos2,pos3,pos4,pos5,count under the name apa1980_top_orderings.csv"
    ),
)

# Folder of each series in the PrefLib-Data repository.
PREFLIB_SERIES = {
    "00001": "irish",
    "00002": "debian",
    "00003": "nasa",
    "00004": "netflix",
    "00005": "burlington",
    "00006": "skate",
    "00009": "agh",
    "00024": "dots",
    "00026": "frenchapproval",
    "00028": "apa",
}
_PREFLIB_SHA256 = {
    "00001-00000001.soi": "2893eaa73ef003d245d7b62a6b521690b8e33e3a35fce61e6d2218c5b24236e3",
    "00001-00000002.soi": "44732e5d9029ab7230284cb07fd83bef6e097e85a34e32ad487b4413a2641462",
    "00001-00000002.toc": "0451dd0b9a2151e20061f56136294e4f20eec2783949d4f97d1b422cfcf613d8",
    "00002-00000003.soi": "ae8a83528355612b2b7fafecde345144e25099dd238805c3b16af6974cfd5a28",
    "00002-00000003.toc": "5ffacb48e6a7bbc5bfc49479994e1631b73d361442b196a71ea71965a4e47724",
    "00003-00000001.toc": "749ec04d28f265c1ec40948b195351ecfe9dce0de7d8da0879d41a534b5f9e5e",
    "00004-00000001.soc": "ce21633732e620c94e2d50af1ac0305e5ba17e65dea0d19c203b6e4f75a7aaae",
    "00004-00000101.soc": "ba249ef8c50bb3010d30cbfbea82f2be46629e49eee9c50f88cbbb6eedc3a1f8",
    "00005-00000001.toc": "0bcbdf0a8fd07e705649544379afe48df7bcc92559b765df575fcda7cf211a2d",
    "00005-00000001.toi": "4c263a9f06c453919421604bafa8c4c7d2e615f14c980ed7de2d90daad1b66ab",
    "00006-00000001.toc": "ecfbcaa7998e5f6050494ccd9d1904cc9576fed86d1ca8fb709eb0e14e36dd34",
    "00006-00000003.soc": "ff0bf395b73ccd8989b81cee0d78ddc4cefabb6b4e68b9942081e8bfd4e83dba",
    "00009-00000001.soc": "89e41d1c1670104889a687f69fa9b067c863d45c03eef4ffd64d08642d63d6ff",
    "00009-00000002.soc": "baebfe99b43972a8222578f811727bb55768407ad7aec7c7a15632377f10938a",
    "00024-00000001.soc": "95a1d29822963329402195694cc62a2046fae8f5e3cf2e7e431df6f4456b58e0",
    "00024-00000004.soc": "206ec157fb68e02d168db26942ebabeedb8cbe0454e507d0706709716a600d7b",
    "00026-00000001.cat": "70c2cc2c928e5f6c05ac562e0760dbee20bc0ed422600e603dbc64fcf24f34fc",
    "00026-00000001.toc": "ffa8f17d18ddd8f1ee7404538ea4845a8fc00569faffdfbf58d122e8a2a528af",
    "00028-00000001.soi": "968a8d934b90480b565b79a7f2533f449f04eff0d6b999108b7b68bcec75a3e7",
    "00028-00000001.toc": "22441f8d2c729081396c3f186ef52aaf7468f17e90cd184dae7706c760d6d457",
    "00028-00000002.soi": "6df10534c5432a9050101b18e6b6fe64e53d697bca033d34f1de018fa009b69c",
    "00028-00000003.soi": "85d7ddc613326e4fc82e32c25c1f0aaf06ccfb4f9e5d0a10b5ae9879e2cb2f3d",
    "00028-00000004.soi": "feefe893ed0e21421fccc4505899fa0da57a2458cc1875d206ba4845263357d9",
    "00028-00000005.soi": "180540578b1a655f9b8314a78027fec91d5547d41c295bad319d41f96f7d798d",
    "00028-00000006.soi": "9111ae296ed1ba7a6ce9dcf5e00082e071cc4ef966db638edef0c5d070d75344",
}

PREFLIB = Source(
    key="preflib",
    title="PrefLib files by number",
    size=f"{len(_PREFLIB_SHA256)} files with known checksums; any other file once it is in place",
    license=(
        "The PrefLib-Data repository is under GPL-3.0; use of a data set asks for the citations listed on "
        "its page, besides PrefLib's own."
    ),
    citation=(
        "N. Mattei and T. Walsh (2013). PrefLib: A Library for Preferences. Proceedings of ADT 2013, "
        "Springer."
    ),
    homepage="https://www.preflib.org/",
    url="https://raw.githubusercontent.com/PrefLib/PrefLib-Data/main/datasets/",
    files={f"{name[:5]} - {PREFLIB_SERIES[name[:5]]}/{name}": sha for name, sha in _PREFLIB_SHA256.items()},
    manual=(
        "no checksum of this file is known, so it is not downloaded. Get it from the series' folder at "
        "https://github.com/PrefLib/PrefLib-Data/tree/main/datasets"
    ),
)

SOURCES = {
    source.key: source for source in (SUSHI, APA_1980, MOVIELENS_100K, MOVIELENS_1M, JESTER, AP, PREFLIB)
}

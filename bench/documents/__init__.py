"""The five documents that Shima implements, in the order of the command's list, and two experiments beside them."""

from documents.columns import ColumnsDocument
from documents.delegate import DelegateDocument
from documents.dsm import DsmDocument
from documents.irregular import IrregularDocument
from documents.scale import ScaleDocument
from documents.steps import StepsDocument
from documents.subgroup import SubgroupDocument

DOCUMENTS = [ColumnsDocument(), StepsDocument(), SubgroupDocument(), DsmDocument(), DelegateDocument(),
             IrregularDocument(), ScaleDocument()]

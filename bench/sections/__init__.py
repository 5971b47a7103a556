"""The sections of the benchmark, one class each (see lib/section.py)."""

from sections.columns import Columns, SmallPieces
from sections.delegated_net import DelegatedNet
from sections.delegation import Delegation
from sections.dsm import Dsm
from sections.host_pieces import HostPieces, SmallestCall
from sections.hosts import SlowWire, TwoHosts
from sections.iod import IodColumns, IodIrregular, IodSmallPieces
from sections.iod_small import IodSmall
from sections.irregular import Irregular, IrregularMemory
from sections.lapi_hosts import LapiHosts
from sections.list_io import ListIo
from sections.mounted import Mounted
from sections.netpipe import NetPipe
from sections.one_space import OneSpace
from sections.overlap import Overlap
from sections.pff_list import PffList
from sections.random_patterns import Random
from sections.small_costs import SmallCosts
from sections.spaces import Spaces
from sections.steps import Steps
from sections.strided_read import StridedRead
from sections.striped import Disks, Subfiles
from sections.subarrays import Subarray3d, Subarray4d
from sections.subgroup import Subgroup
from sections.waitall import Waitall

SECTIONS = [Columns(), Steps(), SmallPieces(), Irregular(), IrregularMemory(), Subarray3d(), Subarray4d(), Random(), TwoHosts(),
            HostPieces(), SlowWire(), ListIo(), SmallCosts(), SmallestCall(), Waitall(),
            Overlap(), Subfiles(), OneSpace(), Disks(), PffList(), StridedRead(), Mounted(),
            IodColumns(), IodSmallPieces(), IodIrregular(), IodSmall(),
            Delegation(), DelegatedNet(), Dsm(), LapiHosts(), NetPipe(), Spaces(), Subgroup()]

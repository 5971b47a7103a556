"""The sections of the benchmark, one class each (see lib/section.py); those of `shima bench` are in bench/experiments."""

from experiments.columns import Columns, SmallPieces
from experiments.delegated_net import DelegatedNet
from experiments.delegation import Delegation
from experiments.disks import Disks
from experiments.dsm import Dsm
from experiments.io_nodes import DaemonDisks, NodeDisks
from experiments.irregular import Irregular, IrregularMemory
from experiments.scale import Scale
from experiments.steps import Steps
from experiments.subgroup import Subgroup
from sections.fresh_memory import FreshMemory
from sections.host_pieces import HostPieces, SmallestCall
from sections.hosts import SlowWire, TwoHosts
from sections.iod import IodColumns, IodIrregular, IodSmallPieces
from sections.iod_small import IodSmall
from sections.lapi_calls import LapiCalls
from sections.lapi_hosts import LapiHosts
from sections.list_io import ListIo
from sections.memory_places import MemoryPlaces
from sections.mounted import Mounted
from sections.netpipe import NetPipe
from sections.one_space import OneSpace
from sections.overlap import Overlap
from sections.pff_list import PffList
from sections.random_patterns import Random
from sections.small_costs import SmallCosts
from sections.spaces import Spaces
from sections.strided_read import StridedRead
from sections.striped import Subfiles
from sections.subarrays import Subarray3d, Subarray4d
from sections.waitall import Waitall
from sections.watched import Watched

SECTIONS = [Columns(), FreshMemory(), Steps(), SmallPieces(), Irregular(), IrregularMemory(), Subarray3d(), Subarray4d(), Random(),
            TwoHosts(), HostPieces(), SlowWire(), ListIo(), SmallCosts(), SmallestCall(), Waitall(),
            Overlap(), Subfiles(), OneSpace(), Disks(), NodeDisks(), DaemonDisks(), PffList(), MemoryPlaces(), StridedRead(),
            Mounted(), IodColumns(), IodSmallPieces(), IodIrregular(), IodSmall(), Watched(),
            Delegation(), DelegatedNet(), Dsm(), LapiCalls(), LapiHosts(), NetPipe(), Spaces(), Scale(), Subgroup()]

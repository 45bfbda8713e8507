from maniple.cluster.resources import Amounts
from maniple.framework.criteria import NodeRows

def book(books: Amounts, nodes: NodeRows, entry: Amounts, sign: int) -> NodeRows: ...

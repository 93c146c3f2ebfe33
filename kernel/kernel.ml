
(** val negb : bool -> bool **)

let negb = function
| true -> false
| false -> true

type nat =
| O
| S of nat

(** val option_map : ('a1 -> 'a2) -> 'a1 option -> 'a2 option **)

let option_map f = function
| Some a -> Some (f a)
| None -> None

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y

(** val length : 'a1 list -> nat **)

let rec length = function
| [] -> O
| _ :: l' -> S (length l')

(** val app : 'a1 list -> 'a1 list -> 'a1 list **)

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

type comparison =
| Eq
| Lt
| Gt

module Coq__1 = struct
 (** val add : nat -> nat -> nat **)
 let rec add n1 m =
   match n1 with
   | O -> m
   | S p -> S (add p m)
end
include Coq__1

(** val eqb : nat -> nat -> bool **)

let rec eqb n1 m =
  match n1 with
  | O -> (match m with
          | O -> true
          | S _ -> false)
  | S n' -> (match m with
             | O -> false
             | S m' -> eqb n' m')

type positive =
| XI of positive
| XO of positive
| XH

type n =
| N0
| Npos of positive

(** val eqb0 : bool -> bool -> bool **)

let eqb0 b1 b2 =
  if b1 then b2 else if b2 then false else true

module type EqLtLe =
 sig
  type t
 end

module type TotalLeBool' =
 sig
  type t

  val leb : t -> t -> bool
 end

module MakeOrderTac =
 functor (O:EqLtLe) ->
 functor (P:sig
 end) ->
 struct
 end

module Nat =
 struct
  (** val eqb : nat -> nat -> bool **)

  let rec eqb n1 m =
    match n1 with
    | O -> (match m with
            | O -> true
            | S _ -> false)
    | S n' -> (match m with
               | O -> false
               | S m' -> eqb n' m')
 end

module Pos =
 struct
  (** val succ : positive -> positive **)

  let rec succ = function
  | XI p -> XO (succ p)
  | XO p -> XI p
  | XH -> XO XH

  (** val add : positive -> positive -> positive **)

  let rec add x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> XO (add_carry p q)
       | XO q -> XI (add p q)
       | XH -> XO (succ p))
    | XO p ->
      (match y with
       | XI q -> XI (add p q)
       | XO q -> XO (add p q)
       | XH -> XI p)
    | XH -> (match y with
             | XI q -> XO (succ q)
             | XO q -> XI q
             | XH -> XO XH)

  (** val add_carry : positive -> positive -> positive **)

  and add_carry x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> XI (add_carry p q)
       | XO q -> XO (add_carry p q)
       | XH -> XI (succ p))
    | XO p ->
      (match y with
       | XI q -> XO (add_carry p q)
       | XO q -> XI (add p q)
       | XH -> XO (succ p))
    | XH ->
      (match y with
       | XI q -> XI (succ q)
       | XO q -> XO (succ q)
       | XH -> XI XH)

  (** val mul : positive -> positive -> positive **)

  let rec mul x y =
    match x with
    | XI p -> add y (XO (mul p y))
    | XO p -> XO (mul p y)
    | XH -> y

  (** val compare_cont : comparison -> positive -> positive -> comparison **)

  let rec compare_cont r x y =
    match x with
    | XI p ->
      (match y with
       | XI q -> compare_cont r p q
       | XO q -> compare_cont Gt p q
       | XH -> Gt)
    | XO p ->
      (match y with
       | XI q -> compare_cont Lt p q
       | XO q -> compare_cont r p q
       | XH -> Gt)
    | XH -> (match y with
             | XH -> r
             | _ -> Lt)

  (** val compare : positive -> positive -> comparison **)

  let compare =
    compare_cont Eq

  (** val eqb : positive -> positive -> bool **)

  let rec eqb p q =
    match p with
    | XI p0 -> (match q with
                | XI q0 -> eqb p0 q0
                | _ -> false)
    | XO p0 -> (match q with
                | XO q0 -> eqb p0 q0
                | _ -> false)
    | XH -> (match q with
             | XH -> true
             | _ -> false)

  (** val ltb : positive -> positive -> bool **)

  let ltb x y =
    match compare x y with
    | Lt -> true
    | _ -> false
 end

module N =
 struct
  (** val succ : n -> n **)

  let succ = function
  | N0 -> Npos XH
  | Npos p -> Npos (Pos.succ p)

  (** val succ_pos : n -> positive **)

  let succ_pos = function
  | N0 -> XH
  | Npos p -> Pos.succ p

  (** val add : n -> n -> n **)

  let add n1 m =
    match n1 with
    | N0 -> m
    | Npos p -> (match m with
                 | N0 -> n1
                 | Npos q -> Npos (Pos.add p q))

  (** val mul : n -> n -> n **)

  let mul n1 m =
    match n1 with
    | N0 -> N0
    | Npos p -> (match m with
                 | N0 -> N0
                 | Npos q -> Npos (Pos.mul p q))

  (** val compare : n -> n -> comparison **)

  let compare n1 m =
    match n1 with
    | N0 -> (match m with
             | N0 -> Eq
             | Npos _ -> Lt)
    | Npos n' -> (match m with
                  | N0 -> Gt
                  | Npos m' -> Pos.compare n' m')

  (** val eqb : n -> n -> bool **)

  let eqb n1 m =
    match n1 with
    | N0 -> (match m with
             | N0 -> true
             | Npos _ -> false)
    | Npos p -> (match m with
                 | N0 -> false
                 | Npos q -> Pos.eqb p q)

  (** val leb : n -> n -> bool **)

  let leb x y =
    match compare x y with
    | Gt -> false
    | _ -> true

  (** val ltb : n -> n -> bool **)

  let ltb x y =
    match compare x y with
    | Lt -> true
    | _ -> false

  (** val max : n -> n -> n **)

  let max n1 n' =
    match compare n1 n' with
    | Gt -> n1
    | _ -> n'
 end

(** val nth_error : 'a1 list -> nat -> 'a1 option **)

let rec nth_error l = function
| O -> (match l with
        | [] -> None
        | x :: _ -> Some x)
| S n2 -> (match l with
           | [] -> None
           | _ :: l0 -> nth_error l0 n2)

(** val rev : 'a1 list -> 'a1 list **)

let rec rev = function
| [] -> []
| x :: l' -> app (rev l') (x :: [])

(** val rev_append : 'a1 list -> 'a1 list -> 'a1 list **)

let rec rev_append l l' =
  match l with
  | [] -> l'
  | a :: l0 -> rev_append l0 (a :: l')

(** val concat : 'a1 list list -> 'a1 list **)

let rec concat = function
| [] -> []
| x :: l0 -> app x (concat l0)

(** val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let rec map f = function
| [] -> []
| a :: t1 -> (f a) :: (map f t1)

(** val flat_map : ('a1 -> 'a2 list) -> 'a1 list -> 'a2 list **)

let rec flat_map f = function
| [] -> []
| x :: t1 -> app (f x) (flat_map f t1)

(** val fold_left : ('a1 -> 'a2 -> 'a1) -> 'a2 list -> 'a1 -> 'a1 **)

let rec fold_left f l a0 =
  match l with
  | [] -> a0
  | b :: t1 -> fold_left f t1 (f a0 b)

(** val existsb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec existsb f = function
| [] -> false
| a :: l0 -> (||) (f a) (existsb f l0)

(** val forallb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec forallb f = function
| [] -> true
| a :: l0 -> (&&) (f a) (forallb f l0)

(** val filter : ('a1 -> bool) -> 'a1 list -> 'a1 list **)

let rec filter f = function
| [] -> []
| x :: l0 -> if f x then x :: (filter f l0) else filter f l0

(** val find : ('a1 -> bool) -> 'a1 list -> 'a1 option **)

let rec find f = function
| [] -> None
| x :: tl -> if f x then Some x else find f tl

type tid = positive

type key = positive

type value = n

(** val t0 : tid **)

let t0 =
  XH

type result =
| Is of value
| OneOf of value list
| NoneOf of value list
| ListIs of value list

(** val matches : result -> value -> bool **)

let matches r v =
  match r with
  | Is w -> N.eqb w v
  | OneOf l -> existsb (N.eqb v) l
  | NoneOf l -> negb (existsb (N.eqb v) l)
  | ListIs _ -> false

type op =
| W of key * value
| R of key * result

type outcome =
| Committed
| Aborted
| Indeterminate

type txn = { session : positive; status : outcome; began : n option;
             ended : n option; ops : op list }

type history = { initial : (key -> value list);
                 beginning : (key -> value list); keys : key list;
                 txns : txn list }

(** val numbered : positive -> 'a1 list -> (positive * 'a1) list **)

let rec numbered i = function
| [] -> []
| x :: r -> (i, x) :: (numbered (Pos.succ i) r)

type choice = { took_effect : (tid -> bool);
                source : (tid -> positive -> tid); order : (key -> tid list);
                total : tid list }

(** val counts : choice -> (tid * txn) -> bool **)

let counts c p =
  match (snd p).status with
  | Committed -> true
  | Aborted -> false
  | Indeterminate -> c.took_effect (fst p)

(** val included : history -> choice -> (tid * txn) list **)

let included h c =
  filter (counts c) (numbered (XO XH) h.txns)

(** val written : key -> op list -> value list **)

let rec written k = function
| [] -> []
| o :: r ->
  (match o with
   | W (k', v) -> if Pos.eqb k k' then v :: (written k r) else written k r
   | R (_, _) -> written k r)

(** val reads :
    positive -> op list -> op list -> (((positive * key) * result) * value
    list) list **)

let rec reads i before = function
| [] -> []
| o :: r ->
  (match o with
   | W (k, v) -> reads (Pos.succ i) ((W (k, v)) :: before) r
   | R (k, v) ->
     (((i, k), v), (written k before)) :: (reads (Pos.succ i) before r))

type var = nat

type set =
| AllT
| Writers of var option
| Readers of var option

type rel =
| So
| Rt
| Init
| Wr of var option
| Ww of var option
| Rw of var option
| Co

type expr =
| Rel of rel
| Id
| Lift of set
| Union of expr * expr
| Inter of expr * expr
| Minus of expr * expr
| Seq of expr * expr
| Inv of expr
| Plus of expr
| Opt of expr
| ForKey of var * expr

type check =
| Acyclic of expr
| Irreflexive of expr
| Empty of expr
| InOrder of expr

type spec = { has_order : bool; checks : check list }

type env = var -> key

(** val bind : var -> key -> env -> env **)

let bind x k n1 y =
  if eqb x y then k else n1 y

(** val of_sources : expr -> bool **)

let rec of_sources = function
| Rel r -> (match r with
            | Wr _ -> true
            | Rw _ -> true
            | _ -> false)
| Union (e0, f) -> (||) (of_sources e0) (of_sources f)
| Inter (e0, f) -> (||) (of_sources e0) (of_sources f)
| Minus (e0, f) -> (||) (of_sources e0) (of_sources f)
| Seq (e0, f) -> (||) (of_sources e0) (of_sources f)
| Inv e0 -> of_sources e0
| Plus e0 -> of_sources e0
| Opt e0 -> of_sources e0
| ForKey (_, e0) -> of_sources e0
| _ -> false

(** val judges_reads : spec -> bool **)

let judges_reads s =
  existsb (fun k ->
    match k with
    | Acyclic e -> of_sources e
    | Irreflexive e -> of_sources e
    | Empty e -> of_sources e
    | InOrder e -> of_sources e) s.checks

type 'x compare0 =
| LT
| EQ
| GT

module type OrderedType =
 sig
  type t

  val compare : t -> t -> t compare0

  val eq_dec : t -> t -> bool
 end

module OrderedTypeFacts =
 functor (O:OrderedType) ->
 struct
  module TO =
   struct
    type t = O.t
   end

  module IsTO =
   struct
   end

  module OrderTac = MakeOrderTac(TO)(IsTO)

  (** val eq_dec : O.t -> O.t -> bool **)

  let eq_dec =
    O.eq_dec

  (** val lt_dec : O.t -> O.t -> bool **)

  let lt_dec x y =
    match O.compare x y with
    | LT -> true
    | _ -> false

  (** val eqb : O.t -> O.t -> bool **)

  let eqb x y =
    if eq_dec x y then true else false
 end

module KeyOrderedType =
 functor (O:OrderedType) ->
 struct
  module MO = OrderedTypeFacts(O)
 end

module PositiveOrderedTypeBits =
 struct
  type t = positive

  (** val compare : t -> t -> positive compare0 **)

  let rec compare p y =
    match p with
    | XI p0 -> (match y with
                | XI p1 -> compare p0 p1
                | _ -> GT)
    | XO p0 -> (match y with
                | XO p1 -> compare p0 p1
                | _ -> LT)
    | XH -> (match y with
             | XI _ -> LT
             | XO _ -> GT
             | XH -> EQ)

  (** val eq_dec : positive -> positive -> bool **)

  let eq_dec x y =
    match Pos.compare x y with
    | Eq -> true
    | _ -> false
 end

(** val append : positive -> positive -> positive **)

let rec append i j =
  match i with
  | XI ii -> XI (append ii j)
  | XO ii -> XO (append ii j)
  | XH -> j

module PositiveMap =
 struct
  module E = PositiveOrderedTypeBits

  module ME = KeyOrderedType(E)

  type key = positive

  type 'a tree =
  | Leaf
  | Node of 'a tree * 'a option * 'a tree

  type 'a t = 'a tree

  (** val empty : 'a1 t **)

  let empty =
    Leaf

  (** val is_empty : 'a1 t -> bool **)

  let rec is_empty = function
  | Leaf -> true
  | Node (l, o, r) ->
    (match o with
     | Some _ -> false
     | None -> (&&) (is_empty l) (is_empty r))

  (** val find : key -> 'a1 t -> 'a1 option **)

  let rec find i = function
  | Leaf -> None
  | Node (l, o, r) ->
    (match i with
     | XI ii -> find ii r
     | XO ii -> find ii l
     | XH -> o)

  (** val mem : key -> 'a1 t -> bool **)

  let rec mem i = function
  | Leaf -> false
  | Node (l, o, r) ->
    (match i with
     | XI ii -> mem ii r
     | XO ii -> mem ii l
     | XH -> (match o with
              | Some _ -> true
              | None -> false))

  (** val add : key -> 'a1 -> 'a1 t -> 'a1 t **)

  let rec add i v = function
  | Leaf ->
    (match i with
     | XI ii -> Node (Leaf, None, (add ii v Leaf))
     | XO ii -> Node ((add ii v Leaf), None, Leaf)
     | XH -> Node (Leaf, (Some v), Leaf))
  | Node (l, o, r) ->
    (match i with
     | XI ii -> Node (l, o, (add ii v r))
     | XO ii -> Node ((add ii v l), o, r)
     | XH -> Node (l, (Some v), r))

  (** val remove : key -> 'a1 t -> 'a1 t **)

  let rec remove i m =
    match i with
    | XI ii ->
      (match m with
       | Leaf -> Leaf
       | Node (l, o, r) ->
         (match l with
          | Leaf ->
            (match o with
             | Some _ -> Node (l, o, (remove ii r))
             | None ->
               (match remove ii r with
                | Leaf -> Leaf
                | Node (t1, o0, t2) -> Node (Leaf, None, (Node (t1, o0, t2)))))
          | Node (_, _, _) -> Node (l, o, (remove ii r))))
    | XO ii ->
      (match m with
       | Leaf -> Leaf
       | Node (l, o, r) ->
         (match o with
          | Some _ -> Node ((remove ii l), o, r)
          | None ->
            (match r with
             | Leaf ->
               (match remove ii l with
                | Leaf -> Leaf
                | Node (t1, o0, t2) -> Node ((Node (t1, o0, t2)), None, Leaf))
             | Node (_, _, _) -> Node ((remove ii l), o, r))))
    | XH ->
      (match m with
       | Leaf -> Leaf
       | Node (l, _, r) ->
         (match l with
          | Leaf ->
            (match r with
             | Leaf -> Leaf
             | Node (_, _, _) -> Node (l, None, r))
          | Node (_, _, _) -> Node (l, None, r)))

  (** val xelements : 'a1 t -> key -> (key * 'a1) list **)

  let rec xelements m i =
    match m with
    | Leaf -> []
    | Node (l, o, r) ->
      (match o with
       | Some x ->
         app (xelements l (append i (XO XH))) ((i,
           x) :: (xelements r (append i (XI XH))))
       | None ->
         app (xelements l (append i (XO XH))) (xelements r (append i (XI XH))))

  (** val elements : 'a1 t -> (key * 'a1) list **)

  let elements m =
    xelements m XH

  (** val cardinal : 'a1 t -> nat **)

  let rec cardinal = function
  | Leaf -> O
  | Node (l, o, r) ->
    (match o with
     | Some _ -> S (Coq__1.add (cardinal l) (cardinal r))
     | None -> Coq__1.add (cardinal l) (cardinal r))

  (** val xfind : key -> key -> 'a1 t -> 'a1 option **)

  let rec xfind i j m =
    match i with
    | XI ii ->
      (match j with
       | XI jj -> xfind ii jj m
       | XO _ -> None
       | XH -> find i m)
    | XO ii ->
      (match j with
       | XI _ -> None
       | XO jj -> xfind ii jj m
       | XH -> find i m)
    | XH -> (match j with
             | XH -> find i m
             | _ -> None)

  (** val xmapi : (key -> 'a1 -> 'a2) -> 'a1 t -> key -> 'a2 t **)

  let rec xmapi f m i =
    match m with
    | Leaf -> Leaf
    | Node (l, o, r) ->
      Node ((xmapi f l (append i (XO XH))), (option_map (f i) o),
        (xmapi f r (append i (XI XH))))

  (** val mapi : (key -> 'a1 -> 'a2) -> 'a1 t -> 'a2 t **)

  let mapi f m =
    xmapi f m XH

  (** val map : ('a1 -> 'a2) -> 'a1 t -> 'a2 t **)

  let map f m =
    mapi (fun _ -> f) m

  (** val xmap2_l :
      ('a1 option -> 'a2 option -> 'a3 option) -> 'a1 t -> 'a3 t **)

  let rec xmap2_l f = function
  | Leaf -> Leaf
  | Node (l, o, r) -> Node ((xmap2_l f l), (f o None), (xmap2_l f r))

  (** val xmap2_r :
      ('a1 option -> 'a2 option -> 'a3 option) -> 'a2 t -> 'a3 t **)

  let rec xmap2_r f = function
  | Leaf -> Leaf
  | Node (l, o, r) -> Node ((xmap2_r f l), (f None o), (xmap2_r f r))

  (** val _map2 :
      ('a1 option -> 'a2 option -> 'a3 option) -> 'a1 t -> 'a2 t -> 'a3 t **)

  let rec _map2 f m1 m2 =
    match m1 with
    | Leaf -> xmap2_r f m2
    | Node (l1, o1, r1) ->
      (match m2 with
       | Leaf -> xmap2_l f m1
       | Node (l2, o2, r2) ->
         Node ((_map2 f l1 l2), (f o1 o2), (_map2 f r1 r2)))

  (** val map2 :
      ('a1 option -> 'a2 option -> 'a3 option) -> 'a1 t -> 'a2 t -> 'a3 t **)

  let map2 f =
    _map2 (fun o1 o2 ->
      match o1 with
      | Some _ -> f o1 o2
      | None -> (match o2 with
                 | Some _ -> f o1 o2
                 | None -> None))

  (** val xfoldi :
      (key -> 'a1 -> 'a2 -> 'a2) -> 'a1 t -> 'a2 -> key -> 'a2 **)

  let rec xfoldi f m v i =
    match m with
    | Leaf -> v
    | Node (l, o, r) ->
      (match o with
       | Some x ->
         xfoldi f r (f i x (xfoldi f l v (append i (XO XH))))
           (append i (XI XH))
       | None ->
         xfoldi f r (xfoldi f l v (append i (XO XH))) (append i (XI XH)))

  (** val fold : (key -> 'a1 -> 'a2 -> 'a2) -> 'a1 t -> 'a2 -> 'a2 **)

  let fold f m i =
    xfoldi f m i XH

  (** val equal : ('a1 -> 'a1 -> bool) -> 'a1 t -> 'a1 t -> bool **)

  let rec equal cmp m1 m2 =
    match m1 with
    | Leaf -> is_empty m2
    | Node (l1, o1, r1) ->
      (match m2 with
       | Leaf -> is_empty m1
       | Node (l2, o2, r2) ->
         (&&)
           ((&&)
             (match o1 with
              | Some v1 ->
                (match o2 with
                 | Some v2 -> cmp v1 v2
                 | None -> false)
              | None -> (match o2 with
                         | Some _ -> false
                         | None -> true)) (equal cmp l1 l2)) (equal cmp r1 r2))
 end

module Sort =
 functor (X:TotalLeBool') ->
 struct
  (** val merge : X.t list -> X.t list -> X.t list **)

  let rec merge l1 l2 =
    let rec merge_aux l3 =
      match l1 with
      | [] -> l3
      | a1 :: l1' ->
        (match l3 with
         | [] -> l1
         | a2 :: l2' ->
           if X.leb a1 a2 then a1 :: (merge l1' l3) else a2 :: (merge_aux l2'))
    in merge_aux l2

  (** val merge_list_to_stack :
      X.t list option list -> X.t list -> X.t list option list **)

  let rec merge_list_to_stack stack l =
    match stack with
    | [] -> (Some l) :: []
    | y :: stack' ->
      (match y with
       | Some l' -> None :: (merge_list_to_stack stack' (merge l' l))
       | None -> (Some l) :: stack')

  (** val merge_stack : X.t list option list -> X.t list **)

  let rec merge_stack = function
  | [] -> []
  | y :: stack' ->
    (match y with
     | Some l -> merge l (merge_stack stack')
     | None -> merge_stack stack')

  (** val iter_merge : X.t list option list -> X.t list -> X.t list **)

  let rec iter_merge stack = function
  | [] -> merge_stack stack
  | a :: l' -> iter_merge (merge_list_to_stack stack (a :: [])) l'

  (** val sort : X.t list -> X.t list **)

  let sort =
    iter_merge []

  (** val flatten_stack : X.t list option list -> X.t list **)

  let rec flatten_stack = function
  | [] -> []
  | o :: stack' ->
    (match o with
     | Some l -> app l (flatten_stack stack')
     | None -> flatten_stack stack')
 end

module M = PositiveMap

type vec = n M.t

(** val leb0 : n option -> n option -> bool **)

let leb0 x y =
  match x with
  | Some v -> (match y with
               | Some w -> N.leb v w
               | None -> false)
  | None -> true

(** val omax : n option -> n option -> n option **)

let omax x y =
  match x with
  | Some v -> (match y with
               | Some w -> Some (N.max v w)
               | None -> x)
  | None -> y

(** val upd : vec -> tid -> n option -> vec **)

let upd g b = function
| Some v ->
  (match M.find b g with
   | Some w -> if N.leb v w then g else M.add b v g
   | None -> M.add b v g)
| None -> g

(** val join : vec -> vec -> vec **)

let join small big =
  fold_left (fun g p -> upd g (fst p) (Some (snd p))) (M.elements small) big

(** val below : vec -> vec -> bool **)

let below g m =
  forallb (fun p -> leb0 (Some (snd p)) (M.find (fst p) m)) (M.elements g)

type event =
| Enter of positive * positive
| Meet of positive * positive

type pool = ((n * tid) * n option) M.t

(** val enter : pool -> positive -> positive -> n option -> pool **)

let enter st p a = function
| Some v ->
  (match M.find p st with
   | Some p0 ->
     let (p1, m2) = p0 in
     let (m, w) = p1 in
     if Pos.eqb a w
     then M.add p (((N.max m v), w), m2) st
     else if N.ltb m v
          then M.add p ((v, a), (omax m2 (Some m))) st
          else M.add p ((m, w), (omax m2 (Some v))) st
   | None -> M.add p ((v, a), None) st)
| None -> st

(** val meet : pool -> positive -> positive -> n option **)

let meet st p b =
  match M.find p st with
  | Some p0 ->
    let (p1, m2) = p0 in let (m, w) = p1 in if Pos.eqb b w then m2 else Some m
  | None -> None

(** val step : vec -> (pool * vec) -> event -> pool * vec **)

let step f s e =
  let (st, g) = s in
  (match e with
   | Enter (p, a) -> ((enter st p a (M.find a f)), g)
   | Meet (p, b) -> (st, (upd g b (meet st p b))))

(** val sweep : vec -> event list -> vec **)

let sweep f l =
  snd (fold_left (step f) l (M.empty, M.empty))

(** val flip : event -> event **)

let flip = function
| Enter (p, a) -> Meet (p, a)
| Meet (p, a) -> Enter (p, a)

(** val backwards : event list -> event list **)

let backwards l =
  rev_append (map flip l) []

type index = { given : (rel -> event list);
               of_key : (rel -> key -> event list);
               members : (set -> tid list);
               members_of : (set -> key -> tid list); all_keys : key list }

(** val events : index -> env -> rel -> event list **)

let events i n1 r = match r with
| Wr x0 -> (match x0 with
            | Some x -> i.of_key r (n1 x)
            | None -> i.given r)
| Ww x0 -> (match x0 with
            | Some x -> i.of_key r (n1 x)
            | None -> i.given r)
| Rw x0 -> (match x0 with
            | Some x -> i.of_key r (n1 x)
            | None -> i.given r)
| _ -> i.given r

(** val elements_of : index -> env -> set -> tid list **)

let elements_of i n1 s = match s with
| AllT -> i.members s
| Writers x0 ->
  (match x0 with
   | Some x -> i.members_of s (n1 x)
   | None -> i.members s)
| Readers x0 ->
  (match x0 with
   | Some x -> i.members_of s (n1 x)
   | None -> i.members s)

(** val both : vec option -> vec option -> vec option **)

let both x y =
  match x with
  | Some g -> (match y with
               | Some g' -> Some (join g g')
               | None -> None)
  | None -> None

(** val post :
    index -> (bool -> env -> expr -> vec -> vec -> vec) -> bool -> env ->
    expr -> vec -> vec option **)

let rec post i guess d n1 e f =
  match e with
  | Rel r ->
    Some (sweep f (if d then backwards (events i n1 r) else events i n1 r))
  | Id -> Some f
  | Lift s ->
    Some
      (fold_left (fun g t1 -> upd g t1 (M.find t1 f)) (elements_of i n1 s)
        M.empty)
  | Union (a, b) -> both (post i guess d n1 a f) (post i guess d n1 b f)
  | Inter (a, _) -> post i guess d n1 a f
  | Minus (a, _) -> post i guess d n1 a f
  | Seq (a, b) ->
    (match if d then post i guess d n1 b f else post i guess d n1 a f with
     | Some g -> if d then post i guess d n1 a g else post i guess d n1 b g
     | None -> None)
  | Inv a -> post i guess (negb d) n1 a f
  | Plus a ->
    (match post i guess d n1 a f with
     | Some g ->
       let m = guess d n1 a f g in
       (match post i guess d n1 a m with
        | Some m' -> if (&&) (below g m) (below m' m) then Some m else None
        | None -> None)
     | None -> None)
  | Opt a ->
    (match post i guess d n1 a f with
     | Some g -> Some (join g f)
     | None -> None)
  | ForKey (x, a) ->
    fold_left (fun g k -> both (post i guess d (bind x k n1) a f) g)
      i.all_keys (Some M.empty)

(** val n0 : env **)

let n0 _ =
  XH

(** val potentials : tid list -> vec -> vec **)

let potentials inside rank =
  fold_left (fun g t1 ->
    M.add t1 (match M.find t1 rank with
              | Some v -> v
              | None -> N0) g) inside M.empty

(** val strictly : vec -> vec -> bool **)

let strictly f g =
  forallb (fun p ->
    match M.find (fst p) f with
    | Some r -> N.ltb (snd p) r
    | None -> false) (M.elements g)

(** val acyclic :
    index -> (bool -> env -> expr -> vec -> vec -> vec) -> tid list -> expr
    -> vec -> bool **)

let acyclic i guess inside e rank =
  let f = potentials inside rank in
  (match post i guess false n0 e f with
   | Some g -> strictly f g
   | None -> false)

(** val positions : tid list -> vec **)

let positions l =
  snd
    (fold_left (fun s t1 -> ((N.succ (fst s)), (M.add t1 (fst s) (snd s)))) l
      (N0, M.empty))

(** val empty_at : vec -> vec -> tid -> bool **)

let empty_at f g t1 =
  match M.find t1 f with
  | Some r -> (match M.find t1 g with
               | Some v -> N.ltb v r
               | None -> true)
  | None -> false

(** val irreflexive :
    index -> (bool -> env -> expr -> vec -> vec -> vec) -> tid list -> expr
    -> tid list list -> bool **)

let irreflexive i guess inside e chains0 =
  let covered = fold_left (fun m t1 -> M.add t1 () m) (concat chains0) M.empty
  in
  (&&) (forallb (fun t1 -> M.mem t1 covered) inside)
    (forallb (fun chain ->
      let f = positions chain in
      (match post i guess false n0 e f with
       | Some g -> forallb (empty_at f g) chain
       | None -> false)) chains0)

(** val nothing :
    index -> (bool -> env -> expr -> vec -> vec -> vec) -> tid list -> expr
    -> bool **)

let nothing i guess inside e =
  match post i guess false n0 e (potentials inside M.empty) with
  | Some g -> (match M.elements g with
               | [] -> true
               | _ :: _ -> false)
  | None -> false

type witness = { w_taken : unit M.t; w_source : tid M.t M.t;
                 w_order : tid list M.t; w_total : tid list }

(** val get : positive -> 'a1 list M.t -> 'a1 list **)

let get k m =
  match M.find k m with
  | Some l -> l
  | None -> []

(** val choice_of : witness -> choice **)

let choice_of w =
  { took_effect = (fun t1 -> M.mem t1 w.w_taken); source = (fun t1 i ->
    match M.find t1 w.w_source with
    | Some m -> (match M.find i m with
                 | Some u -> u
                 | None -> t0)
    | None -> t0); order = (fun k -> get k w.w_order); total = w.w_total }

(** val table : ('a1 -> 'a2) -> (positive * 'a1) list -> 'a2 M.t **)

let table f l =
  fold_left (fun m p -> M.add (fst p) (f (snd p)) m) l M.empty

(** val group : (positive * 'a1) list -> 'a1 list M.t **)

let group l =
  fold_left (fun m p -> M.add (fst p) ((snd p) :: (get (fst p) m)) m) l
    M.empty

(** val set_of : positive list -> unit M.t **)

let set_of l =
  fold_left (fun m t1 -> M.add t1 () m) l M.empty

(** val distinct : unit M.t -> positive list -> bool **)

let rec distinct seen = function
| [] -> true
| t1 :: r -> (&&) (negb (M.mem t1 seen)) (distinct (M.add t1 () seen) r)

(** val last_writes : op list -> value M.t **)

let last_writes l =
  fold_left (fun m o -> match o with
                        | W (k, v) -> M.add k v m
                        | R (_, _) -> m) l M.empty

(** val strip : value list -> value list -> value list option **)

let rec strip m l =
  match m with
  | [] -> Some l
  | x :: m0 ->
    (match l with
     | [] -> None
     | y :: l0 -> if N.eqb x y then strip m0 l0 else None)

(** val up_to :
    (tid -> value list) -> tid -> tid -> tid list -> tid -> value list -> bool **)

let rec up_to elements1 u t1 versions0 here l =
  if Pos.eqb here u
  then (match l with
        | [] -> true
        | _ :: _ -> false)
  else (match versions0 with
        | [] -> false
        | v :: r ->
          (&&) (negb (Pos.eqb v t1))
            (match strip (elements1 v) l with
             | Some l0 -> up_to elements1 u t1 r v l0
             | None -> false))

(** val just_before :
    (tid -> value list) -> tid -> value list -> tid list -> value list -> bool **)

let rec just_before elements1 t1 own versions0 l =
  match versions0 with
  | [] -> false
  | v :: r ->
    if Pos.eqb v t1
    then (match strip own l with
          | Some l0 -> (match l0 with
                        | [] -> true
                        | _ :: _ -> false)
          | None -> false)
    else (match strip (elements1 v) l with
          | Some l0 -> just_before elements1 t1 own r l0
          | None -> false)

(** val elements_in : txn M.t -> key -> tid -> value list **)

let elements_in txns0 k u =
  match M.find u txns0 with
  | Some x -> written k x.ops
  | None -> []

(** val possible : history -> (tid * txn) list **)

let possible h =
  filter (fun p -> match (snd p).status with
                   | Aborted -> false
                   | _ -> true) (numbered (XO XH) h.txns)

(** val versions : (tid * txn) list -> (key * (value * tid)) list **)

let versions inc =
  flat_map (fun p ->
    map (fun kv -> ((fst kv), ((snd kv), (fst p))))
      (M.elements (last_writes (snd p).ops))) inc

(** val explicableb :
    history -> (value * tid) list M.t -> tid -> key -> result -> bool **)

let explicableb h versions0 t1 k r = match r with
| ListIs _ -> true
| _ ->
  (||) (existsb (matches r) (h.initial k))
    (existsb (fun p -> (&&) (negb (Pos.eqb (snd p) t1)) (matches r (fst p)))
      (get k versions0))

(** val versions_of : history -> (value * tid) list M.t **)

let versions_of h =
  group (versions (possible h))

(** val wroteb : history -> value M.t M.t -> tid -> key -> result -> bool **)

let wroteb h final u k r =
  if Pos.eqb u t0
  then existsb (matches r) (h.initial k)
  else (match M.find u final with
        | Some m ->
          (match M.find k m with
           | Some w -> matches r w
           | None -> false)
        | None -> false)

(** val sourced :
    history -> bool -> tid -> key -> result -> (value * tid) list M.t -> bool **)

let sourced h judged t1 k r versions0 =
  (||) judged (explicableb h versions0 t1 k r)

(** val looked_up : history -> bool -> (value * tid) list M.t **)

let looked_up h = function
| true -> M.empty
| false -> versions_of h

(** val read_ok :
    history -> witness -> bool -> (value * tid) list M.t -> value M.t M.t ->
    txn M.t -> tid -> positive -> key -> result -> value list -> bool **)

let read_ok h w judged =
  let c = choice_of w in
  (fun versions0 final all t1 i k r own ->
  match own with
  | [] ->
    let u = c.source t1 i in
    (||) (negb (sourced h judged t1 k r versions0))
      ((&&) (negb (Pos.eqb u t1))
        (match r with
         | ListIs l ->
           (match strip (h.beginning k) l with
            | Some l0 -> up_to (elements_in all k) u t1 (c.order k) t0 l0
            | None -> false)
         | _ -> wroteb h final u k r))
  | v :: _ ->
    (||) (negb judged)
      (match r with
       | ListIs l ->
         (match strip (h.beginning k) l with
          | Some l0 ->
            just_before (elements_in all k) t1 (rev own) (c.order k) l0
          | None -> false)
       | _ -> matches r v))

(** val reads_ok :
    history -> witness -> bool -> (value * tid) list M.t -> (tid * txn) list
    -> value M.t M.t -> txn M.t -> bool **)

let reads_ok h w judged versions0 inc final all =
  forallb (fun p ->
    forallb (fun r ->
      let (y, own) = r in
      let (y0, r0) = y in
      let (i, k) = y0 in
      read_ok h w judged versions0 final all (fst p) i k r0 own)
      (reads XH [] (snd p).ops)) inc

(** val orders_ok : witness -> (tid * txn) list -> value M.t M.t -> bool **)

let orders_ok w inc final =
  (&&)
    (forallb (fun p ->
      (&&) (distinct (M.add t0 () M.empty) (snd p))
        (forallb (fun u ->
          match M.find u final with
          | Some m -> M.mem (fst p) m
          | None -> false) (snd p))) (M.elements w.w_order))
    (let sets = M.map set_of w.w_order in
     forallb (fun p ->
       forallb (fun kv ->
         match M.find (fst kv) sets with
         | Some s -> M.mem (fst p) s
         | None -> false) (M.elements (last_writes (snd p).ops))) inc)

type moment = n * event

module ByTime =
 struct
  type t = moment

  (** val leb : t -> t -> bool **)

  let leb a b =
    N.leb (fst a) (fst b)
 end

module TimeSort = Sort(ByTime)

(** val taken :
    history -> witness -> bool -> (tid * txn) list -> (key * (tid * tid)) list **)

let taken h w judged =
  let c = choice_of w in
  (fun inc ->
  let versions0 = looked_up h judged in
  flat_map (fun p ->
    flat_map (fun r ->
      let (y, own) = r in
      let (y0, r0) = y in
      let (i, k) = y0 in
      (match own with
       | [] ->
         if sourced h judged (fst p) k r0 versions0
         then (k, ((c.source (fst p) i), (fst p))) :: []
         else []
       | _ :: _ -> [])) (reads XH [] (snd p).ops)) inc)

(** val certain : txn -> bool **)

let certain x =
  match x.status with
  | Committed -> true
  | _ -> false

(** val init_events : (tid * txn) list -> event list **)

let init_events inc =
  (Enter (XH, t0)) :: (map (fun p -> Meet (XH, (fst p))) inc)

(** val so_events : (tid * txn) list -> event list **)

let so_events inc =
  flat_map (fun p ->
    let s = Pos.succ (snd p).session in
    (Meet (s,
    (fst p))) :: (if certain (snd p) then (Enter (s, (fst p))) :: [] else []))
    inc

(** val moments : (tid * txn) list -> moment list **)

let moments inc =
  flat_map (fun p ->
    app
      (match (snd p).began with
       | Some s -> ((N.mul (Npos (XO XH)) s), (Meet ((XO XH), (fst p)))) :: []
       | None -> [])
      (match (snd p).ended with
       | Some e ->
         if certain (snd p)
         then ((N.add (N.mul (Npos (XO XH)) e) (Npos XH)), (Enter ((XO XH),
                (fst p)))) :: []
         else []
       | None -> [])) inc

(** val rt_events : (tid * txn) list -> event list **)

let rt_events inc =
  map snd (TimeSort.sort (moments inc))

(** val wr_events : (tid * tid) list -> event list **)

let wr_events l =
  app (map (fun p -> Enter ((fst p), (fst p))) l)
    (map (fun p -> Meet ((fst p), (snd p))) l)

(** val ww_events : key -> tid list -> event list **)

let ww_events k l =
  flat_map (fun u -> (Meet (k, u)) :: ((Enter (k, u)) :: [])) (t0 :: l)

(** val rw_events : key -> tid list -> (tid * tid) list -> event list **)

let rw_events k l taken0 =
  let readers = group taken0 in
  flat_map (fun u -> (Meet (k,
    u)) :: (map (fun x -> Enter (k, x)) (get u readers))) (t0 :: l)

(** val is_write : op -> bool **)

let is_write = function
| W (_, _) -> true
| R (_, _) -> false

(** val index_of : history -> witness -> bool -> (tid * txn) list -> index **)

let index_of h w judged inc =
  let taken0 = taken h w judged inc in
  let by_key = group taken0 in
  let i = init_events inc in
  let s = app i (so_events inc) in
  let r = app i (rt_events inc) in
  let wr = wr_events (map snd taken0) in
  let ww =
    flat_map (fun p -> ww_events (fst p) (snd p)) (M.elements w.w_order)
  in
  let rw =
    flat_map (fun p -> rw_events (fst p) (snd p) (get (fst p) by_key))
      (M.elements w.w_order)
  in
  let co =
    flat_map (fun u -> (Meet (XH, u)) :: ((Enter (XH, u)) :: [])) w.w_total
  in
  let everyone = t0 :: (map fst inc) in
  let writers =
    app (match h.keys with
         | [] -> []
         | _ :: _ -> t0 :: [])
      (map fst (filter (fun p -> existsb is_write (snd p).ops) inc))
  in
  let readers = map (fun p -> snd (snd p)) taken0 in
  { given = (fun x ->
  match x with
  | So -> s
  | Rt -> r
  | Init -> i
  | Wr _ -> wr
  | Ww _ -> ww
  | Rw _ -> rw
  | Co -> co); of_key = (fun x k ->
  match x with
  | Wr _ -> wr_events (get k by_key)
  | Ww _ -> ww_events k (get k w.w_order)
  | Rw _ -> rw_events k (get k w.w_order) (get k by_key)
  | _ -> []); members = (fun x ->
  match x with
  | AllT -> everyone
  | Writers _ -> writers
  | Readers _ -> readers); members_of = (fun x k ->
  match x with
  | AllT -> everyone
  | Writers _ -> t0 :: (get k w.w_order)
  | Readers _ -> map snd (get k by_key)); all_keys =
  (map fst (M.elements (set_of h.keys))) }

(** val places : witness -> vec M.t **)

let places w =
  M.map (fun l -> positions (t0 :: l)) w.w_order

(** val sources :
    history -> witness -> bool -> (tid * txn) list -> (key * tid) list M.t **)

let sources h w judged inc =
  group
    (map (fun p -> ((snd (snd p)), ((fst p), (fst (snd p)))))
      (taken h w judged inc))

(** val after : vec M.t -> key -> tid -> tid -> bool **)

let after places0 k u a =
  match M.find k places0 with
  | Some p ->
    (match M.find u p with
     | Some i -> (match M.find a p with
                  | Some j -> N.ltb i j
                  | None -> false)
     | None -> false)
  | None -> false

(** val session_writes : (tid * txn) list -> (positive * (key * tid)) list **)

let session_writes inc =
  flat_map (fun p ->
    if certain (snd p)
    then flat_map (fun o ->
           match o with
           | W (k, _) -> ((snd p).session, (k, (fst p))) :: []
           | R (_, _) -> []) (snd p).ops
    else []) inc

(** val session_writers : (tid * txn) list -> tid list M.t M.t **)

let session_writers inc =
  M.map group (group (session_writes inc))

(** val wr_direct : history -> witness -> bool -> (tid * txn) list -> bool **)

let wr_direct h w judged inc =
  let places0 = places w in
  let sources0 = sources h w judged inc in
  forallb (fun p ->
    let (_, y0) = p in
    let (a, m) = y0 in
    forallb (fun r -> negb (after places0 (fst r) (snd r) a)) (get m sources0))
    (taken h w judged inc)

(** val so_direct : history -> witness -> bool -> (tid * txn) list -> bool **)

let so_direct h w judged inc =
  let places0 = places w in
  let sources0 = sources h w judged inc in
  let writers = session_writers inc in
  forallb (fun p ->
    match M.find (snd p).session writers with
    | Some by_key ->
      forallb (fun r ->
        forallb (fun a ->
          negb ((&&) (Pos.ltb a (fst p)) (after places0 (fst r) (snd r) a)))
          (get (fst r) by_key)) (get (fst p) sources0)
    | None -> true) inc

type oracle = { closure : (bool -> env -> expr -> vec -> vec -> vec);
                ranking : (expr -> vec); chains : tid list list }

(** val at_most : vec -> vec -> bool **)

let at_most f g =
  forallb (fun p ->
    match M.find (fst p) f with
    | Some r -> N.leb (snd p) r
    | None -> false) (M.elements g)

(** val in_order : witness -> oracle -> index -> expr -> bool **)

let in_order w o i e =
  let f = positions w.w_total in
  (match e with
   | Minus (e', f0) ->
     (match f0 with
      | Id ->
        (match post i o.closure false n0 e' f with
         | Some g -> at_most f g
         | None -> false)
      | _ ->
        (match post i o.closure false n0 e f with
         | Some g -> strictly f g
         | None -> false))
   | _ ->
     (match post i o.closure false n0 e f with
      | Some g -> strictly f g
      | None -> false))

(** val unkeyed : expr -> bool **)

let rec unkeyed = function
| Rel r ->
  (match r with
   | Wr x -> (match x with
              | Some _ -> false
              | None -> true)
   | Ww x -> (match x with
              | Some _ -> false
              | None -> true)
   | Rw x -> (match x with
              | Some _ -> false
              | None -> true)
   | _ -> true)
| Id -> true
| Lift s0 ->
  (match s0 with
   | AllT -> true
   | Writers x -> (match x with
                   | Some _ -> false
                   | None -> true)
   | Readers x -> (match x with
                   | Some _ -> false
                   | None -> true))
| Union (e0, f) -> (&&) (unkeyed e0) (unkeyed f)
| Inter (e0, f) -> (&&) (unkeyed e0) (unkeyed f)
| Minus (e0, f) -> (&&) (unkeyed e0) (unkeyed f)
| Seq (e0, f) -> (&&) (unkeyed e0) (unkeyed f)
| Inv e0 -> unkeyed e0
| Plus e0 -> unkeyed e0
| Opt e0 -> unkeyed e0
| ForKey (_, _) -> false

(** val not_back :
    history -> spec -> witness -> oracle -> (tid * txn) list -> index -> tid
    list -> expr -> bool **)

let not_back h s w o =
  let judged = judges_reads s in
  let rec not_back0 inc i everyone phi = match phi with
  | Rel r ->
    (match r with
     | So -> so_direct h w judged inc
     | Init -> true
     | Wr x ->
       (match x with
        | Some _ ->
          irreflexive i o.closure everyone (Seq (phi, (Opt (Rel (Rw None)))))
            o.chains
        | None -> wr_direct h w judged inc)
     | _ ->
       irreflexive i o.closure everyone (Seq (phi, (Opt (Rel (Rw None)))))
         o.chains)
  | Union (a, b) ->
    (&&) (not_back0 inc i everyone a) (not_back0 inc i everyone b)
  | _ ->
    irreflexive i o.closure everyone (Seq (phi, (Opt (Rel (Rw None)))))
      o.chains
  in not_back0

(** val observed :
    history -> spec -> witness -> oracle -> (tid * txn) list -> index -> tid
    list -> expr -> bool **)

let observed h s w o inc i everyone = function
| Minus (e0, f) ->
  (match e0 with
   | ForKey (x, e1) ->
     (match e1 with
      | Seq (e2, f0) ->
        (match e2 with
         | Lift s0 ->
           (match s0 with
            | Writers x0 ->
              (match x0 with
               | Some y ->
                 (match f0 with
                  | Seq (phi, f1) ->
                    (match f1 with
                     | Inv e3 ->
                       (match e3 with
                        | Rel r ->
                          (match r with
                           | Wr x1 ->
                             (match x1 with
                              | Some z ->
                                (match f with
                                 | Id ->
                                   (&&)
                                     ((&&)
                                       ((&&)
                                         ((&&) (Nat.eqb x y) (Nat.eqb x z))
                                         (unkeyed phi))
                                       (in_order w o i (Rel (Ww None))))
                                     (not_back h s w o inc i everyone phi)
                                 | _ -> false)
                              | None -> false)
                           | _ -> false)
                        | _ -> false)
                     | _ -> false)
                  | _ -> false)
               | None -> false)
            | _ -> false)
         | _ -> false)
      | _ -> false)
   | _ -> false)
| _ -> false

(** val check_one :
    history -> spec -> witness -> oracle -> (tid * txn) list -> index -> tid
    list -> check -> bool **)

let check_one h s w o inc i everyone = function
| Acyclic e -> acyclic i o.closure everyone e (o.ranking e)
| Irreflexive e ->
  (||)
    (match e with
     | Seq (phi, f) ->
       (match f with
        | Rel r ->
          (match r with
           | Rw x ->
             (match x with
              | Some _ -> false
              | None -> not_back h s w o inc i everyone phi)
           | _ -> false)
        | _ -> false)
     | _ -> false) (irreflexive i o.closure everyone e o.chains)
| Empty e -> nothing i o.closure everyone e
| InOrder e ->
  (&&) s.has_order
    ((||) (observed h s w o inc i everyone e) (in_order w o i e))

(** val check_legal : history -> spec -> witness -> oracle -> bool **)

let check_legal h s w o =
  let c = choice_of w in
  let judged = judges_reads s in
  let inc = included h c in
  let final = table (fun x -> last_writes x.ops) inc in
  let all_txns = table (fun x -> x) inc in
  let everyone = t0 :: (map fst inc) in
  let all = set_of everyone in
  (&&)
    ((&&)
      ((&&)
        ((&&)
          ((&&) (reads_ok h w judged (looked_up h judged) inc final all_txns)
            (orders_ok w inc final)) (distinct M.empty w.w_total))
        (forallb (fun t1 -> M.mem t1 all) w.w_total))
      (if s.has_order
       then let t1 = set_of w.w_total in
            forallb (fun x -> M.mem x t1) everyone
       else true))
    (let i = index_of h w judged inc in
     forallb (check_one h s w o inc i everyone) s.checks)

(** val check_witness : history -> spec -> witness -> oracle -> bool **)

let check_witness =
  check_legal

type atom =
| Src of tid * positive * tid
| Bef of key * tid * tid
| Prec of tid * tid
| Taken of tid

type literal = bool * positive

type clause = literal list

type edge =
| Known of rel * tid * tid * positive list
| Read of positive
| Over of positive
| Anti of positive * positive

type proof_step =
| Own of tid * positive list
| Choose of tid * positive * positive list * positive list
| Cycle of nat * nat * edge list
| Line of positive list
| Either of positive * positive * positive list
| Inside of positive * positive
| Unlike of positive * positive
| First of positive * positive list
| Shows of tid * positive * value * positive list * positive list
| Listed of tid * positive * positive * positive list
| Torn of tid * positive * tid * positive list
| Rup of clause * positive list

type refutation = { atoms : atom M.t; steps : proof_step list }

type entry = ((rel * key) * tid) * tid

type pairs = (tid * tid) list

type facts = { f_txns : txn M.t; f_writes : value M.t M.t;
               f_reads : (key * result) M.t M.t;
               f_sourced : (tid -> key -> result -> bool);
               f_writers : tid list M.t M.t;
               f_versions : (value * tid) list M.t; f_lists : unit M.t;
               f_elements : tid list M.t M.t; f_keys : unit M.t }

(** val key_of : op -> key **)

let key_of = function
| W (k, _) -> k
| R (k, _) -> k

(** val value_key : value -> positive **)

let value_key =
  N.succ_pos

(** val external_reads : txn -> (positive * (key * result)) list **)

let external_reads x =
  flat_map (fun r ->
    let (y, y0) = r in
    let (y1, v) = y in
    let (i, k) = y1 in (match y0 with
                        | [] -> (i, (k, v)) :: []
                        | _ :: _ -> [])) (reads XH [] x.ops)

(** val writers_by_value :
    (tid * txn) list -> (key * (positive * tid)) list **)

let writers_by_value inc =
  flat_map (fun p ->
    map (fun kv -> ((fst kv), ((value_key (snd kv)), (fst p))))
      (M.elements (last_writes (snd p).ops))) inc

(** val list_keys : history -> unit M.t **)

let list_keys h =
  set_of
    (flat_map (fun x ->
      flat_map (fun o ->
        match o with
        | W (_, _) -> []
        | R (k, r) -> (match r with
                       | ListIs _ -> k :: []
                       | _ -> [])) x.ops) h.txns)

(** val elements0 :
    unit M.t -> (tid * txn) list -> (key * (positive * tid)) list **)

let elements0 lists inc =
  flat_map (fun p ->
    flat_map (fun o ->
      match o with
      | W (k, v) ->
        if M.mem k lists then (k, ((value_key v), (fst p))) :: [] else []
      | R (_, _) -> []) (snd p).ops) inc

(** val facts_of : history -> bool -> facts **)

let facts_of h judged =
  let inc = possible h in
  let versions0 = versions_of h in
  { f_txns = (table (fun x -> x) inc); f_writes =
  (table (fun x -> last_writes x.ops) inc); f_reads =
  (table (fun x -> table (fun p -> p) (external_reads x)) inc); f_sourced =
  (fun t1 k r -> sourced h judged t1 k r versions0); f_writers =
  (M.map group (group (writers_by_value inc))); f_versions = versions0;
  f_lists = (list_keys h); f_elements =
  (M.map group (group (elements0 (list_keys h) inc))); f_keys =
  (set_of h.keys) }

(** val same : tid -> tid -> bool **)

let same =
  Pos.eqb

(** val adjacent : pairs -> tid list M.t **)

let adjacent =
  group

(** val tidy : pairs -> pairs **)

let tidy l =
  flat_map (fun p ->
    map (fun b -> ((fst p), (fst b))) (M.elements (set_of (snd p))))
    (M.elements (group l))

(** val compose : pairs -> pairs -> pairs **)

let compose l m =
  let next = adjacent m in
  flat_map (fun p -> map (fun b -> ((fst p), b)) (get (snd p) next)) l

(** val reach : tid list M.t -> nat -> tid list -> unit M.t -> unit M.t **)

let rec reach next fuel work seen =
  match fuel with
  | O -> seen
  | S n1 ->
    (match work with
     | [] -> seen
     | x :: r ->
       if M.mem x seen
       then reach next n1 r seen
       else reach next n1 (app (get x next) r) (M.add x () seen))

(** val plus : pairs -> pairs **)

let plus l =
  let next = adjacent l in
  let fuel = S (add (length l) (length l)) in
  flat_map (fun p ->
    map (fun b -> ((fst p), (fst b)))
      (M.elements (reach next fuel (snd p) M.empty))) (M.elements next)

(** val surely : facts -> tid -> bool **)

let surely f t1 =
  (||) (same t1 t0)
    (match M.find t1 f.f_txns with
     | Some x -> certain x
     | None -> false)

(** val writes_it : facts -> tid -> key -> bool **)

let writes_it f t1 k =
  (||) (same t1 t0)
    (match M.find t1 f.f_writes with
     | Some m -> M.mem k m
     | None -> false)

(** val read_of : facts -> tid -> positive -> (key * result) option **)

let read_of f t1 i =
  match M.find t1 f.f_reads with
  | Some m ->
    (match M.find i m with
     | Some p ->
       let (k, r) = p in if f.f_sourced t1 k r then Some (k, r) else None
     | None -> None)
  | None -> None

(** val key_is : env -> var option -> key -> bool **)

let key_is n1 x k =
  match x with
  | Some y -> Pos.eqb k (n1 y)
  | None -> true

(** val fits : env -> rel -> entry -> bool **)

let fits n1 r = function
| (p, _) ->
  let (p0, _) = p in
  let (q, k) = p0 in
  (match r with
   | So -> (match q with
            | So -> true
            | Init -> true
            | _ -> false)
   | Rt -> (match q with
            | Rt -> true
            | Init -> true
            | _ -> false)
   | Init -> (match q with
              | Init -> true
              | _ -> false)
   | Wr x -> (match q with
              | Wr _ -> key_is n1 x k
              | _ -> false)
   | Ww x -> (match q with
              | Ww _ -> key_is n1 x k
              | _ -> false)
   | Rw x -> (match q with
              | Rw _ -> key_is n1 x k
              | _ -> false)
   | Co -> (match q with
            | Co -> true
            | _ -> false))

(** val test : facts -> env -> set -> tid -> bool **)

let test f n1 s t1 =
  match s with
  | AllT -> true
  | Writers x0 ->
    (match x0 with
     | Some x -> writes_it f t1 (n1 x)
     | None ->
       if same t1 t0
       then negb (M.is_empty f.f_keys)
       else (match M.find t1 f.f_writes with
             | Some m ->
               existsb (fun p -> M.mem (fst p) f.f_keys) (M.elements m)
             | None -> false))
  | Readers x ->
    (match M.find t1 f.f_reads with
     | Some m ->
       existsb (fun p ->
         (&&) (key_is n1 x (fst (snd p)))
           (f.f_sourced t1 (fst (snd p)) (snd (snd p)))) (M.elements m)
     | None -> false)

(** val identity : tid list -> pairs **)

let identity nodes =
  map (fun t1 -> (t1, t1)) nodes

(** val eval :
    facts -> entry list -> tid list -> key list -> env -> expr -> pairs **)

let rec eval f l nodes local_keys n1 = function
| Rel r ->
  map (fun e0 -> let (y, b) = e0 in let (_, a) = y in (a, b))
    (filter (fits n1 r) l)
| Id -> identity nodes
| Lift s -> map (fun t1 -> (t1, t1)) (filter (test f n1 s) nodes)
| Union (a, b) ->
  app (eval f l nodes local_keys n1 a) (eval f l nodes local_keys n1 b)
| Inter (a, b) ->
  let m = eval f l nodes local_keys n1 b in
  filter (fun p ->
    existsb (fun q -> (&&) (same (fst p) (fst q)) (same (snd p) (snd q))) m)
    (eval f l nodes local_keys n1 a)
| Minus (a, f0) ->
  (match f0 with
   | Id ->
     filter (fun p -> negb (same (fst p) (snd p)))
       (eval f l nodes local_keys n1 a)
   | _ -> [])
| Seq (a, b) ->
  tidy
    (compose (eval f l nodes local_keys n1 a)
      (eval f l nodes local_keys n1 b))
| Inv a -> map (fun p -> ((snd p), (fst p))) (eval f l nodes local_keys n1 a)
| Plus a -> plus (tidy (eval f l nodes local_keys n1 a))
| Opt a -> app (identity nodes) (eval f l nodes local_keys n1 a)
| ForKey (x, a) ->
  flat_map (fun k -> eval f l nodes local_keys (bind x k n1) a) local_keys

(** val has_loop : pairs -> bool **)

let has_loop l =
  existsb (fun p -> same (fst p) (snd p)) l

(** val by_value : facts -> key -> value -> tid list **)

let by_value f k v =
  match M.find k f.f_writers with
  | Some m -> get (value_key v) m
  | None -> []

(** val candidates : history -> facts -> key -> result -> tid list **)

let candidates h f k r = match r with
| ListIs l ->
  app
    (match strip (h.beginning k) l with
     | Some l0 -> (match l0 with
                   | [] -> t0 :: []
                   | _ :: _ -> [])
     | None -> []) (match rev l with
                    | [] -> []
                    | e :: _ -> by_value f k e)
| _ ->
  app (if existsb (matches r) (h.initial k) then t0 :: [] else [])
    (match r with
     | Is v -> by_value f k v
     | _ -> map snd (filter (fun p -> matches r (fst p)) (get k f.f_versions)))

(** val writers_of : facts -> key -> value -> tid list **)

let writers_of f k e =
  match M.find k f.f_elements with
  | Some m -> get (value_key e) m
  | None -> []

(** val only_by : facts -> key -> tid -> value -> bool **)

let only_by f k a e =
  forallb (same a) (writers_of f k e)

(** val shown :
    history -> key -> value list -> value list -> value list option **)

let shown h k l own =
  match strip (h.beginning k) l with
  | Some l0 ->
    (match strip own (rev l0) with
     | Some m -> Some (rev m)
     | None -> None)
  | None -> None

(** val list_read :
    history -> facts -> tid -> positive -> ((key * value list option) * bool)
    option **)

let list_read h f t1 i =
  match M.find t1 f.f_txns with
  | Some x ->
    (match find (fun r ->
             let (y, _) = r in
             let (y1, _) = y in let (j, _) = y1 in Pos.eqb i j)
             (reads XH [] x.ops) with
     | Some p ->
       let (p0, own) = p in
       let (p1, r) = p0 in
       let (_, k) = p1 in
       (match r with
        | ListIs l ->
          if M.mem k f.f_lists
          then Some ((k, (shown h k l own)),
                 (match own with
                  | [] -> false
                  | _ :: _ -> true))
          else None
        | _ -> None)
     | None -> None)
  | None -> None

(** val later : (value -> bool) -> (value -> bool) -> value list -> bool **)

let rec later p q = function
| [] -> false
| e :: r -> if p e then existsb q r else later p q r

(** val lists_order :
    facts -> key -> value list -> bool -> tid -> tid -> tid -> bool -> bool **)

let lists_order f k mid own t1 a b b_is_in =
  (&&) (negb (same a b))
    ((||) (later (only_by f k a) (only_by f k b) mid)
      ((&&)
        ((&&) ((||) (existsb (only_by f k a) mid) ((&&) own (same a t1)))
          b_is_in)
        (existsb (fun g -> negb (existsb (N.eqb g) mid))
          (elements_in f.f_txns k b))))

(** val is_torn : facts -> key -> value list -> tid -> tid -> bool **)

let is_torn f k mid t1 a =
  match filter (only_by f k a) mid with
  | [] -> false
  | v :: l ->
    (||) (same a t1)
      (match strip (v :: l)
               (filter (only_by f k a) (elements_in f.f_txns k a)) with
       | Some l0 -> (match l0 with
                     | [] -> false
                     | _ :: _ -> true)
       | None -> true)

(** val excused : facts -> atom M.t -> tid -> positive list -> bool **)

let excused f a t1 ins =
  (||) (surely f t1)
    (existsb (fun x ->
      match M.find x a with
      | Some a0 -> (match a0 with
                    | Taken t' -> same t1 t'
                    | _ -> false)
      | None -> false) ins)

(** val edge_entries :
    spec -> facts -> atom M.t -> edge -> (entry list * positive list) option **)

let edge_entries s f a = function
| Known (r, a0, b, ins) ->
  let ok =
    match r with
    | So ->
      (||) ((&&) (same a0 t0) (negb (same b t0)))
        (match M.find a0 f.f_txns with
         | Some x ->
           (match M.find b f.f_txns with
            | Some y ->
              (&&) ((&&) (certain x) (same x.session y.session))
                (Pos.ltb a0 b)
            | None -> false)
         | None -> false)
    | Rt ->
      (||) ((&&) (same a0 t0) (negb (same b t0)))
        ((&&) (negb (same a0 b))
          (match M.find a0 f.f_txns with
           | Some x ->
             (match M.find b f.f_txns with
              | Some y ->
                (&&) (certain x)
                  (match x.ended with
                   | Some e0 ->
                     (match y.began with
                      | Some s0 -> N.ltb e0 s0
                      | None -> false)
                   | None -> false)
              | None -> false)
           | None -> false))
    | Init -> (&&) (same a0 t0) (negb (same b t0))
    | _ -> false
  in
  if (&&) ok (excused f a b ins)
  then Some (((((r, XH), a0), b) :: []), ins)
  else None
| Read v ->
  (match M.find v a with
   | Some a0 ->
     (match a0 with
      | Src (t1, i, u) ->
        (match read_of f t1 i with
         | Some p ->
           let (k, _) = p in
           Some ((((((Wr None), k), u), t1) :: []), (v :: []))
         | None -> None)
      | _ -> None)
   | None -> None)
| Over v ->
  (match M.find v a with
   | Some a0 ->
     (match a0 with
      | Bef (k, a1, b) -> Some ((((((Ww None), k), a1), b) :: []), (v :: []))
      | Prec (a1, b) ->
        if s.has_order
        then Some (((((Co, XH), a1), b) :: []), (v :: []))
        else None
      | _ -> None)
   | None -> None)
| Anti (v, w) ->
  (match M.find v a with
   | Some a0 ->
     (match a0 with
      | Src (t1, i, u) ->
        (match read_of f t1 i with
         | Some p ->
           let (k, _) = p in
           (match M.find w a with
            | Some a1 ->
              (match a1 with
               | Bef (k', u', b) ->
                 if (&&) (same k k') (same u u')
                 then Some ((((((Wr None), k), u), t1) :: (((((Ww None), k),
                        u),
                        b) :: (if same t1 b
                               then []
                               else ((((Rw None), k), t1), b) :: []))),
                        (v :: (w :: [])))
                 else None
               | Prec (u', b) ->
                 if (&&) s.has_order (same u u')
                 then Some ((((((Wr None), k), u), t1) :: ((((Co, XH), u),
                        b) :: [])), (v :: (w :: [])))
                 else None
               | _ -> None)
            | None -> None)
         | None -> None)
      | _ -> None)
   | None -> None)

(** val all_entries :
    spec -> facts -> atom M.t -> edge list -> (entry list * positive list)
    option **)

let rec all_entries s f a = function
| [] -> Some ([], [])
| e :: r ->
  (match edge_entries s f a e with
   | Some p ->
     let (x, v) = p in
     (match all_entries s f a r with
      | Some p0 -> let (y, w) = p0 in Some ((app x y), (app v w))
      | None -> None)
   | None -> None)

(** val nodes_of : entry list -> tid list **)

let nodes_of l =
  map fst
    (M.elements
      (set_of
        (t0 :: (flat_map (fun e ->
                 let (y, b) = e in let (_, a) = y in a :: (b :: [])) l))))

(** val keys_of : facts -> tid list -> entry list -> key list **)

let keys_of f nodes l =
  let accessed =
    flat_map (fun t1 ->
      match M.find t1 f.f_txns with
      | Some x -> map key_of x.ops
      | None -> []) nodes
  in
  filter (fun k -> M.mem k f.f_keys)
    (map fst
      (M.elements
        (set_of
          (app accessed
            (map (fun e ->
              let (y, _) = e in let (y1, _) = y in let (_, k) = y1 in k) l)))))

(** val violates : facts -> entry list -> check -> bool **)

let violates f l k =
  let n1 = fun _ -> XH in
  let nodes = nodes_of l in
  let ev = eval f l nodes (keys_of f nodes l) n1 in
  (match k with
   | Acyclic e -> has_loop (ev (Plus e))
   | Irreflexive e -> has_loop (ev e)
   | Empty e -> (match ev e with
                 | [] -> false
                 | _ :: _ -> true)
   | InOrder _ -> false)

(** val forced : spec -> facts -> entry list -> pairs **)

let forced s f l =
  let n1 = fun _ -> XH in
  let nodes = nodes_of l in
  flat_map (fun k ->
    match k with
    | InOrder e -> eval f l nodes (keys_of f nodes l) n1 e
    | _ -> []) s.checks

(** val unordered : spec -> facts -> nat -> entry list -> bool **)

let rec unordered s f rounds l =
  let l0 =
    plus (tidy (app (forced s f l) (eval f l [] [] (fun _ -> XH) (Rel Co))))
  in
  (||) ((||) (has_loop l0) (existsb (fun k -> violates f l k) s.checks))
    (match rounds with
     | O -> false
     | S n1 ->
       unordered s f n1
         (app (map (fun p -> (((Co, XH), (fst p)), (snd p))) l0)
           (filter (fun e ->
             let (y, _) = e in
             let (y1, _) = y in
             let (y3, _) = y1 in (match y3 with
                                  | Co -> false
                                  | _ -> true)) l)))

(** val of_results : proof_step -> bool **)

let of_results = function
| Own (_, _) -> true
| Shows (_, _, _, _, _) -> true
| Listed (_, _, _, _) -> true
| Torn (_, _, _, _) -> true
| _ -> false

(** val clause_of_step :
    history -> spec -> facts -> atom M.t -> proof_step -> clause M.t ->
    clause option **)

let clause_of_step h s f a p db =
  match p with
  | Own (t1, ins) ->
    (match M.find t1 f.f_txns with
     | Some x ->
       if (&&)
            (existsb (fun r ->
              let (y, y0) = r in
              let (_, v) = y in
              (match v with
               | Is _ ->
                 (match y0 with
                  | [] -> false
                  | w :: _ -> negb (matches v w))
               | ListIs l ->
                 (match y0 with
                  | [] -> false
                  | w :: own ->
                    (match strip (w :: own) (rev l) with
                     | Some _ -> false
                     | None -> true))
               | _ ->
                 (match y0 with
                  | [] -> false
                  | w :: _ -> negb (matches v w)))) (reads XH [] x.ops))
            (excused f a t1 ins)
       then Some (map (fun x0 -> (false, x0)) ins)
       else None
     | None -> None)
  | Choose (t1, i, vs, ins) ->
    (match read_of f t1 i with
     | Some p0 ->
       let (k, v) = p0 in
       if forallb (fun u ->
            (||) (same u t1)
              (existsb (fun x ->
                match M.find x a with
                | Some a0 ->
                  (match a0 with
                   | Src (t', i', u') ->
                     (&&) ((&&) (same t1 t') (same i i')) (same u u')
                   | _ -> false)
                | None -> false) vs)) (candidates h f k v)
       then if excused f a t1 ins
            then Some
                   (app (map (fun x -> (true, x)) vs)
                     (map (fun x -> (false, x)) ins))
            else None
       else None
     | None -> None)
  | Cycle (number, rounds, edges) ->
    (match all_entries s f a edges with
     | Some p0 ->
       let (l, vs) = p0 in
       if if s.has_order
          then unordered s f rounds l
          else (match nth_error s.checks number with
                | Some k -> violates f l k
                | None -> false)
       then Some (map (fun x -> (false, x)) vs)
       else None
     | None -> None)
  | Line vs ->
    (match all_entries s f a (map (fun x -> Over x) vs) with
     | Some p0 ->
       let (l, _) = p0 in
       let keys0 =
         map (fun e ->
           let (y, _) = e in let (y1, _) = y in let (_, k) = y1 in k) l
       in
       let kind = fun k ->
         if existsb (fun e ->
              let (y, _) = e in
              let (y1, _) = y in
              let (y3, _) = y1 in (match y3 with
                                   | Co -> true
                                   | _ -> false)) l
         then if s.has_order then eval f l [] [] (fun _ -> k) (Rel Co) else []
         else eval f l [] [] (fun _ -> k) (Rel (Ww (Some O)))
       in
       if existsb (fun k -> has_loop (plus (tidy (kind k)))) keys0
       then Some (map (fun x -> (false, x)) vs)
       else None
     | None -> None)
  | Either (v, w, ins) ->
    (match M.find v a with
     | Some a0 ->
       (match a0 with
        | Bef (k, a1, b) ->
          (match M.find w a with
           | Some a2 ->
             (match a2 with
              | Bef (k', b', a') ->
                if (&&)
                     ((&&)
                       ((&&)
                         ((&&)
                           ((&&)
                             ((&&) ((&&) (same k k') (same a1 a'))
                               (same b b')) (negb (same a1 b)))
                           (writes_it f a1 k)) (writes_it f b k))
                       (excused f a a1 ins)) (excused f a b ins)
                then Some ((true, v) :: ((true,
                       w) :: (map (fun x -> (false, x)) ins)))
                else None
              | _ -> None)
           | None -> None)
        | Prec (a1, b) ->
          (match M.find w a with
           | Some a2 ->
             (match a2 with
              | Prec (b', a') ->
                if (&&)
                     ((&&)
                       ((&&)
                         ((&&) ((&&) s.has_order (same a1 a')) (same b b'))
                         (negb (same a1 b))) (excused f a a1 ins))
                     (excused f a b ins)
                then Some ((true, v) :: ((true,
                       w) :: (map (fun x -> (false, x)) ins)))
                else None
              | _ -> None)
           | None -> None)
        | _ -> None)
     | None -> None)
  | Inside (v, w) ->
    (match M.find v a with
     | Some a0 ->
       (match a0 with
        | Src (t1, i, u) ->
          (match M.find w a with
           | Some a1 ->
             (match a1 with
              | Taken t' ->
                (match read_of f t1 i with
                 | Some _ ->
                   if (&&) (negb (same t' t0)) ((||) (same t' t1) (same t' u))
                   then Some ((false, v) :: ((true, w) :: []))
                   else None
                 | None -> None)
              | _ -> None)
           | None -> None)
        | Bef (_, a1, b) ->
          (match M.find w a with
           | Some a2 ->
             (match a2 with
              | Taken t' ->
                if (&&) (negb (same t' t0)) ((||) (same t' a1) (same t' b))
                then Some ((false, v) :: ((true, w) :: []))
                else None
              | _ -> None)
           | None -> None)
        | Prec (a1, b) ->
          (match M.find w a with
           | Some a2 ->
             (match a2 with
              | Taken t' ->
                if (&&) ((&&) s.has_order (negb (same t' t0)))
                     ((||) (same t' a1) (same t' b))
                then Some ((false, v) :: ((true, w) :: []))
                else None
              | _ -> None)
           | None -> None)
        | Taken _ -> None)
     | None -> None)
  | Unlike (v, w) ->
    (match M.find v a with
     | Some a0 ->
       (match a0 with
        | Src (t1, i, u) ->
          (match M.find w a with
           | Some a1 ->
             (match a1 with
              | Src (t', i', u') ->
                if (&&) ((&&) (same t1 t') (same i i')) (negb (same u u'))
                then Some ((false, v) :: ((false, w) :: []))
                else None
              | _ -> None)
           | None -> None)
        | _ -> None)
     | None -> None)
  | First (v, ins) ->
    (match M.find v a with
     | Some a0 ->
       (match a0 with
        | Bef (k, a1, b) ->
          if (&&)
               ((&&) ((&&) (same a1 t0) (negb (same b t0))) (writes_it f b k))
               (excused f a b ins)
          then Some ((true, v) :: (map (fun x -> (false, x)) ins))
          else None
        | _ -> None)
     | None -> None)
  | Shows (t1, i, e, vs, ins) ->
    (match list_read h f t1 i with
     | Some p0 ->
       let (p1, _) = p0 in
       let (k, o) = p1 in
       (match o with
        | Some mid ->
          if (&&) ((&&) (existsb (N.eqb e) mid) (excused f a t1 ins))
               (forallb (fun u ->
                 existsb (fun x ->
                   match M.find x a with
                   | Some a0 ->
                     (match a0 with
                      | Taken t' -> same u t'
                      | _ -> false)
                   | None -> false) vs) (writers_of f k e))
          then Some
                 (app (map (fun x -> (true, x)) vs)
                   (map (fun x -> (false, x)) ins))
          else None
        | None -> None)
     | None -> None)
  | Listed (t1, i, v, ins) ->
    (match list_read h f t1 i with
     | Some p0 ->
       let (p1, own) = p0 in
       let (k, o) = p1 in
       (match o with
        | Some mid ->
          (match M.find v a with
           | Some a0 ->
             (match a0 with
              | Bef (k', a1, b) ->
                if (&&) ((&&) (same k k') (excused f a t1 ins))
                     (lists_order f k mid own t1 a1 b (excused f a b ins))
                then Some ((true, v) :: (map (fun x -> (false, x)) ins))
                else None
              | _ -> None)
           | None -> None)
        | None -> None)
     | None -> None)
  | Torn (t1, i, a0, ins) ->
    (match list_read h f t1 i with
     | Some p0 ->
       let (p1, _) = p0 in
       let (k, mid) = p1 in
       if (&&)
            (match mid with
             | Some mid0 -> is_torn f k mid0 t1 a0
             | None -> true) (excused f a t1 ins)
       then Some (map (fun x -> (false, x)) ins)
       else None
     | None -> None)
  | Rup (c, hints) ->
    let start =
      fold_left (fun m l -> M.add (snd l) (negb (fst l)) m) c M.empty
    in
    let go =
      let rec go hs m =
        match hs with
        | [] -> false
        | x :: r ->
          (match M.find x db with
           | Some cl ->
             (match filter (fun l ->
                      match M.find (snd l) m with
                      | Some b -> eqb0 b (fst l)
                      | None -> true) cl with
              | [] -> true
              | l :: ls ->
                (match ls with
                 | [] -> go r (M.add (snd l) (fst l) m)
                 | _ :: _ ->
                   if forallb (fun y ->
                        (&&) (Pos.eqb (snd l) (snd y)) (eqb0 (fst l) (fst y)))
                        ls
                   then go r (M.add (snd l) (fst l) m)
                   else false))
           | None -> false)
      in go
    in
    if go hints start then Some c else None

(** val step_clause :
    history -> spec -> facts -> atom M.t -> proof_step -> clause M.t ->
    clause option **)

let step_clause h s f a p db =
  if (&&) (of_results p) (negb (judges_reads s))
  then None
  else clause_of_step h s f a p db

(** val run :
    history -> spec -> facts -> atom M.t -> proof_step list -> positive ->
    clause M.t -> bool **)

let rec run h s f a l next db =
  match l with
  | [] -> false
  | p :: r ->
    (match step_clause h s f a p db with
     | Some c ->
       (match c with
        | [] -> true
        | _ :: _ -> run h s f a r (Pos.succ next) (M.add next c db))
     | None -> false)

(** val check_refutation : history -> spec -> refutation -> bool **)

let check_refutation h s r =
  run h s (facts_of h (judges_reads s)) r.atoms r.steps XH M.empty

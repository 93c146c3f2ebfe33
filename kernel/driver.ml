(* Reads a history, a level and a proof as text (README.md, The text), and prints what the kernel says.

   Trusted: the reading of the history and of the level, which --echo prints again as it understood
   them. Not trusted: everything below "Guesses"; the
   kernel checks each guess. A wrong guess can only make the kernel refuse a proof. *)
open Kernel

exception Malformed of string
exception Gave_up of string
let malformed message = raise (Malformed message)

let rec pos n = if n = 1 then XH else if n land 1 = 0 then XO (pos (n lsr 1)) else XI (pos (n lsr 1))
let rec int_of_pos = function XH -> 1 | XO p -> 2 * int_of_pos p | XI p -> 2 * int_of_pos p + 1
let natural n = if n = 0 then N0 else Npos (pos n)
let int_of_n = function N0 -> 0 | Npos p -> int_of_pos p
let rec nat n = if n = 0 then O else S (nat (n - 1))
let rec int_of_nat = function O -> 0 | S n -> 1 + int_of_nat n

(* --- Reading --- *)

let echoes, files = match List.tl (Array.to_list Sys.argv) with
  | "--echo" :: rest -> true, rest
  | rest -> false, rest
let text =
  let read channel =
    let buffer = Buffer.create 65536 and piece = Bytes.create 65536 in
    let rec go () =
      let n = input channel piece 0 (Bytes.length piece) in
      if n > 0 then (Buffer.add_subbytes buffer piece 0 n; go ()) in
    set_binary_mode_in channel true; go (); Buffer.contents buffer in
  lazy (match files with
    | [] -> read stdin
    | name :: _ -> let file = open_in_bin name in let all = read file in close_in file; all)

let at = ref 0
let word () =
  let text = Lazy.force text in
  let length = String.length text in
  while !at < length && text.[!at] <= ' ' do incr at done;
  let first = !at in
  while !at < length && text.[!at] > ' ' do incr at done;
  if first = !at then malformed "the text ends too early";
  String.sub text first (!at - first)

let number word =
  if word = "" || String.length word > 18 then malformed ("not a number: " ^ word);
  String.iter (fun c -> if c < '0' || c > '9' then malformed ("not a number: " ^ word)) word;
  int_of_string word
let int () = number (word ())
let small what = let n = int () in if n > 1000 then malformed ("too large: " ^ what); n
let p () = let n = int () in if n < 1 then malformed "0, where numbers begin with 1"; pos n
let expect w = let got = word () in if got <> w then malformed (Printf.sprintf "expected %s, got %s" w got)
let many f =
  let n = int () in
  if n > String.length (Lazy.force text) then malformed "a count that exceeds the text";
  let rec go n done_ = if n = 0 then List.rev done_ else let x = f () in go (n - 1) (x :: done_) in
  go n []
let value () = natural (int ())
let time () = match word () with "-" -> None | w -> Some (natural (number w))

let op () = match word () with
  | "w" -> let k = p () in W (k, value ())
  | "r" -> let k = p () in R (k, Is (value ()))
  | "o" -> let k = p () in R (k, OneOf (many value))
  | "n" -> let k = p () in R (k, NoneOf (many value))
  | "l" -> let k = p () in R (k, ListIs (many value))
  | w -> malformed ("no operation: " ^ w)
let txn () =
  expect "t";
  let session = p () in
  let status = match word () with
    | "c" -> Committed | "a" -> Aborted | "u" -> Indeterminate | w -> malformed ("no outcome: " ^ w) in
  let began = time () in
  let ended = time () in
  { session; status; began; ended; ops = many op }
let var () = match word () with
  | "_" -> None
  | w -> let n = number w in if n > 1000 then malformed "too large: a key variable"; Some (nat n)
let rec expr () = match word () with
  | "so" -> Rel So | "rt" -> Rel Rt | "init" -> Rel Init | "co" -> Rel Co | "id" -> Id
  | "wr" -> Rel (Wr (var ())) | "ww" -> Rel (Ww (var ())) | "rw" -> Rel (Rw (var ()))
  | "T" -> Lift AllT | "W" -> Lift (Writers (var ())) | "R" -> Lift (Readers (var ()))
  | "union" -> let a = expr () in Union (a, expr ())
  | "inter" -> let a = expr () in Inter (a, expr ())
  | "minus" -> let a = expr () in Minus (a, expr ())
  | "seq" -> let a = expr () in Seq (a, expr ())
  | "inv" -> Inv (expr ()) | "plus" -> Plus (expr ()) | "opt" -> Opt (expr ())
  | "for" -> let x = nat (small "a key variable") in ForKey (x, expr ())
  | w -> malformed ("no expression: " ^ w)
let check () = match word () with
  | "acyclic" -> Acyclic (expr ()) | "irreflexive" -> Irreflexive (expr ())
  | "empty" -> Empty (expr ()) | "inorder" -> InOrder (expr ())
  | w -> malformed ("no check: " ^ w)

let rec numbers n rest = if n = 0 then rest else numbers (n - 1) (pos n :: rest)
let history () =
  expect "history";
  let txns = many txn in
  expect "keys";
  let n = int () in
  if n > 100_000_000 then malformed "too large: the number of keys";
  let of_keys word default =
    expect word;
    let table = Hashtbl.create 16 in
    List.iter (fun (k, l) ->
        if k > n then malformed "a key that the history does not have";
        Hashtbl.replace table k l)
      (many (fun () -> let k = int_of_pos (p ()) in (k, many value)));
    fun k -> match Hashtbl.find_opt table (int_of_pos k) with Some l -> l | None -> default in
  let initial = of_keys "initial" [N0] in
  { initial; beginning = of_keys "beginning" []; keys = numbers n []; txns }
let level () =
  expect "level";
  let has_order = match word () with
    | "order" -> true | "no-order" -> false | w -> malformed ("expected order or no-order, got " ^ w) in
  { has_order; checks = many check }

let put k v m = M.add k v m
let witness () =
  expect "included";
  let included = List.fold_left (fun m t -> put t () m) M.empty (many p) in
  expect "source";
  let source = List.fold_left (fun m (t, i, u) ->
      let inner = match M.find t m with Some x -> x | None -> M.empty in put t (put i u inner) m)
    M.empty (many (fun () -> let t = p () in let i = p () in (t, i, p ()))) in
  expect "orders";
  let orders = List.fold_left (fun m (k, l) -> put k l m) M.empty (many (fun () -> let k = p () in (k, many p))) in
  { w_taken = included; w_source = source; w_order = orders; w_total = [] }

let atom () =
  let v = p () in
  match word () with
  | "source" -> let t = p () in let i = p () in (v, Src (t, i, p ()))
  | "before" -> let k = p () in let a = p () in (v, Bef (k, a, p ()))
  | "in-order" -> let a = p () in (v, Prec (a, p ()))
  | "in" -> (v, Taken (p ()))
  | w -> malformed ("no literal: " ^ w)
let known r = let a = p () in let b = p () in Known (r, a, b, many p)
let edge () = match word () with
  | "so" -> known So | "rt" -> known Rt | "init" -> known Init
  | "wr" -> Read (p ()) | "ww" -> Over (p ()) | "rw" -> let v = p () in Anti (v, p ())
  | w -> malformed ("no edge: " ^ w)
let literal () = match word () with
  | "" -> malformed "no literal"
  | w when w.[0] = '-' ->
    let n = number (String.sub w 1 (String.length w - 1)) in
    if n < 1 then malformed "literal 0"; (false, pos n)
  | w -> let n = number w in if n < 1 then malformed "literal 0"; (true, pos n)
let step () = match word () with
  | "anomaly" -> let t = p () in Own (t, many p)
  | "choice" -> let t = p () in let i = p () in let vs = many p in Choose (t, i, vs, many p)
  | "inside" -> let v = p () in Inside (v, p ())
  | "cycle" ->
    let n = nat (small "a check") in let r = nat (small "a number of rounds") in Cycle (n, r, many edge)
  | "order" -> Line (many p)
  | "either" -> let v = p () in let w = p () in Either (v, w, many p)
  | "unlike" -> let v = p () in Unlike (v, p ())
  | "first" -> let v = p () in First (v, many p)
  | "shows" ->
    let t = p () in let i = p () in let e = value () in let vs = many p in Shows (t, i, e, vs, many p)
  | "listed" -> let t = p () in let i = p () in let v = p () in Listed (t, i, v, many p)
  | "torn" -> let t = p () in let i = p () in let a = p () in Torn (t, i, a, many p)
  | "rup" -> let c = many literal in Rup (c, many p)
  | w -> malformed ("no step: " ^ w)
let refutation () =
  expect "literals";
  let atoms = List.fold_left (fun m (v, x) -> put v x m) M.empty (many atom) in
  expect "steps";
  { atoms; steps = many step }

let ends () =
  expect "end";
  let text = Lazy.force text in
  while !at < String.length text do
    if text.[!at] > ' ' then malformed "text after the end";
    incr at
  done

(* --- Echo: the history and the level as they were understood --- *)

let say_words words = print_string (String.concat " " words); print_newline ()
let numeral n = string_of_int (int_of_n n)
let pos_numeral p = string_of_int (int_of_pos p)
let listed f l = string_of_int (List.length l) :: List.concat (List.map f l)
let numerals = listed (fun v -> [numeral v])
let op_words = function
  | W (k, v) -> ["w"; pos_numeral k; numeral v]
  | R (k, Is v) -> ["r"; pos_numeral k; numeral v]
  | R (k, OneOf l) -> "o" :: pos_numeral k :: numerals l
  | R (k, NoneOf l) -> "n" :: pos_numeral k :: numerals l
  | R (k, ListIs l) -> "l" :: pos_numeral k :: numerals l
let time_word = function None -> "-" | Some t -> numeral t
let txn_words x =
  let outcome = match x.status with Committed -> "c" | Aborted -> "a" | Indeterminate -> "u" in
  "t" :: pos_numeral x.session :: outcome :: time_word x.began :: time_word x.ended :: listed op_words x.ops
let var_word = function None -> "_" | Some x -> string_of_int (int_of_nat x)
let rec expr_words = function
  | Rel So -> ["so"] | Rel Rt -> ["rt"] | Rel Init -> ["init"] | Rel Co -> ["co"] | Id -> ["id"]
  | Rel (Wr x) -> ["wr"; var_word x] | Rel (Ww x) -> ["ww"; var_word x] | Rel (Rw x) -> ["rw"; var_word x]
  | Lift AllT -> ["T"] | Lift (Writers x) -> ["W"; var_word x] | Lift (Readers x) -> ["R"; var_word x]
  | Union (a, b) -> "union" :: expr_words a @ expr_words b
  | Inter (a, b) -> "inter" :: expr_words a @ expr_words b
  | Minus (a, b) -> "minus" :: expr_words a @ expr_words b
  | Seq (a, b) -> "seq" :: expr_words a @ expr_words b
  | Inv a -> "inv" :: expr_words a | Plus a -> "plus" :: expr_words a | Opt a -> "opt" :: expr_words a
  | ForKey (x, a) -> "for" :: string_of_int (int_of_nat x) :: expr_words a
let check_words = function
  | Acyclic e -> "acyclic" :: expr_words e | Irreflexive e -> "irreflexive" :: expr_words e
  | Empty e -> "empty" :: expr_words e | InOrder e -> "inorder" :: expr_words e
let echo h level =
  let entries word f default =
    let other = List.filter (fun k -> f k <> default) h.keys in
    say_words (word :: listed (fun k -> pos_numeral k :: numerals (f k)) other) in
  say_words ["isolang-kernel"; "2"];
  say_words ("history" :: listed txn_words h.txns);
  say_words ["keys"; string_of_int (List.length h.keys)];
  entries "initial" h.initial [N0];
  entries "beginning" h.beginning [];
  say_words ("level" :: (if level.has_order then "order" else "no-order") :: listed check_words level.checks)

(* --- Guesses: what the kernel checks --- *)

(* A graph of [nodes] nodes, with edges as two columns. *)
type graph = { mutable nodes : int; mutable m : int; mutable src : int array; mutable dst : int array }
let graph () = { nodes = 0; m = 0; src = Array.make 1024 0; dst = Array.make 1024 0 }
let fresh g = g.nodes <- g.nodes + 1; g.nodes - 1
let fresh_all g n = Array.init n (fun _ -> fresh g)
let add_edge g a b =
  if g.m = Array.length g.src then begin
    let grow x = Array.append x (Array.make g.m 0) in g.src <- grow g.src; g.dst <- grow g.dst end;
  g.src.(g.m) <- a; g.dst.(g.m) <- b; g.m <- g.m + 1

(* The events of a relation, as plain numbers: whether one enters, the pool, the transaction. *)
let known_events : (bool * rel, (bool * int * int) array) Hashtbl.t = Hashtbl.create 16
let plain = function
  | Enter (p, a) -> (true, int_of_pos p, int_of_pos a)
  | Meet (p, b) -> (false, int_of_pos p, int_of_pos b)
let events_of idx backward env r =
  let make () =
    let l = events idx env r in Array.of_list (List.map plain (if backward then backwards l else l)) in
  match r with
  | Wr (Some _) | Ww (Some _) | Rw (Some _) -> make ()
  | _ ->
    match Hashtbl.find_opt known_events (backward, r) with
    | Some e -> e
    | None -> let e = make () in Hashtbl.add known_events (backward, r) e; e

(* Adds edges so that [e] leads from a to b iff the graph leads from [inn.(a)] to [out.(b)]. *)
let rec build g idx n backward env e inn out = match e with
  | Rel r ->
    let pools = Hashtbl.create 64 in
    Array.iter (fun (enters, p, a) ->
      if enters then begin
        let chain, members = match Hashtbl.find_opt pools p with
          | Some x -> x
          | None -> let x = (ref [], Hashtbl.create 4) in Hashtbl.add pools p x; x in
        let c = fresh g in
        (match !chain with (_, previous) :: _ -> add_edge g previous c | [] -> ());
        add_edge g inn.(a) c;
        chain := (a, c) :: !chain;
        Hashtbl.replace members a ()
      end else match Hashtbl.find_opt pools p with
        | None -> ()
        | Some (chain, members) ->
          if not (Hashtbl.mem members a) then
            (match !chain with (_, c) :: _ -> add_edge g c out.(a) | [] -> ())
          else (* all that have entered, but itself *)
            let rec go l = match l with
              | [] -> ()
              | (b, c) :: rest ->
                if List.exists (fun (x, _) -> x = a) l then begin
                  if b <> a then add_edge g inn.(b) out.(a); go rest end
                else add_edge g c out.(a) in
            go !chain) (events_of idx backward env r)
  | Id -> Array.iteri (fun t x -> add_edge g x out.(t)) inn
  | Lift s ->
    List.iter (fun t -> let t = int_of_pos t in add_edge g inn.(t) out.(t)) (elements_of idx env s)
  | Union (a, b) -> build g idx n backward env a inn out; build g idx n backward env b inn out
  | Inter (a, _) | Minus (a, _) -> build g idx n backward env a inn out
  | Seq (a, b) ->
    let middle = fresh_all g n in
    let a, b = if backward then b, a else a, b in
    build g idx n backward env a inn middle; build g idx n backward env b middle out
  | Inv a -> build g idx n (not backward) env a inn out
  | Plus a ->
    let middle = fresh_all g n in
    build g idx n backward env a inn middle; build g idx n backward env a middle middle;
    Array.iteri (fun t x -> add_edge g x out.(t)) middle
  | Opt a -> Array.iteri (fun t x -> add_edge g x out.(t)) inn; build g idx n backward env a inn out
  | ForKey (x, a) ->
    List.iter (fun k -> build g idx n backward (fun y -> if y = x then k else env y) a inn out) idx.all_keys

let adjacency g =
  let start = Array.make (g.nodes + 1) 0 in
  for i = 0 to g.m - 1 do let s = g.src.(i) in start.(s + 1) <- start.(s + 1) + 1 done;
  for i = 1 to g.nodes do start.(i) <- start.(i) + start.(i - 1) done;
  let fill = Array.copy start and next = Array.make (max g.m 1) 0 in
  for i = 0 to g.m - 1 do let s = g.src.(i) in next.(fill.(s)) <- g.dst.(i); fill.(s) <- fill.(s) + 1 done;
  start, next

(* The components (Tarjan 1972), successors first; the nodes in that order; how many components. *)
let components g (start, next) =
  let n = g.nodes in
  let index = Array.make n (-1) and low = Array.make n 0 and comp = Array.make n (-1) in
  let position = Array.sub start 0 (max n 1) and stack = Array.make n 0 and path = Array.make n 0 in
  let sp = ref 0 and pp = ref 0 and count = ref 0 and found = ref 0 in
  let order = Array.make n 0 and filled = ref 0 in
  for root = 0 to n - 1 do
    if index.(root) < 0 then begin
      let push v = index.(v) <- !count; low.(v) <- !count; incr count;
        stack.(!sp) <- v; incr sp; path.(!pp) <- v; incr pp in
      push root;
      while !pp > 0 do
        let v = path.(!pp - 1) in
        if position.(v) < start.(v + 1) then begin
          let w = next.(position.(v)) in position.(v) <- position.(v) + 1;
          if index.(w) < 0 then push w
          else if comp.(w) < 0 then low.(v) <- min low.(v) index.(w)
        end else begin
          decr pp;
          if !pp > 0 then (let u = path.(!pp - 1) in low.(u) <- min low.(u) low.(v));
          if low.(v) = index.(v) then begin
            let continue = ref true in
            while !continue do
              decr sp; let w = stack.(!sp) in comp.(w) <- !found; order.(!filled) <- w; incr filled;
              if w = v then continue := false
            done; incr found
          end
        end
      done
    end
  done; comp, order, !found

let no_keys _ = XH
let ranking_ idx n e =
  let g = graph () in
  let s = fresh_all g n in
  build g idx n false no_keys e s s;
  let comp, _, found = components g (adjacency g) in
  let m = ref M.empty in
  for t = 1 to n - 1 do m := put (pos t) (natural (found - comp.(s.(t)))) !m done; !m

let rec mentions what = function
  | Rel _ | Lift _ | Id as e -> what e
  | Union (a, b) | Inter (a, b) | Minus (a, b) | Seq (a, b) -> mentions what a || mentions what b
  | Inv a | Plus a | Opt a | ForKey (_, a) -> mentions what a
let keyed = mentions (function
  | Rel (Wr (Some _) | Ww (Some _) | Rw (Some _)) | Lift (Writers (Some _) | Readers (Some _)) -> true
  | _ -> false)
let of_sessions = mentions (function Rel So -> true | _ -> false)

let known_closures = Hashtbl.create 8
let closure_ idx n backward env a f _ =
  let make () =
    let g = graph () in
    let s = fresh_all g n in
    let middle = fresh_all g n in
    build g idx n backward env a s middle; build g idx n backward env a middle middle;
    let neighbours = adjacency g in (g, s, middle, neighbours, components g neighbours) in
  let g, s, middle, (start, next), (comp, order, found) =
    if keyed a then make () else
      match Hashtbl.find_opt known_closures (backward, a) with
      | Some x -> x
      | None -> let x = make () in Hashtbl.add known_closures (backward, a) x; x in
  let highest = Array.make found (-1) in
  List.iter (fun (t, v) ->
    let c = comp.(s.(int_of_pos t)) in highest.(c) <- max highest.(c) (int_of_n v)) (M.elements f);
  for i = g.nodes - 1 downto 0 do
    let u = order.(i) in
    let v = highest.(comp.(u)) in
    if v >= 0 then for j = start.(u) to start.(u + 1) - 1 do
      let c = comp.(next.(j)) in if highest.(c) < v then highest.(c) <- v done
  done;
  let m = ref M.empty in
  for t = 1 to n - 1 do
    let v = highest.(comp.(middle.(t))) in if v >= 0 then m := put (pos t) (natural v) !m done;
  !m

(* An order of all transactions that contains what the checks put into it, and the version orders. *)
let total_of idx n level included =
  let g = graph () in
  let nodes = fresh_all g n in
  List.iter (function
    | InOrder (Minus _) -> ()
    | InOrder e -> build g idx n false no_keys e nodes nodes
    | _ -> ()) level.checks;
  build g idx n false no_keys (Rel (Ww None)) nodes nodes;
  Hashtbl.reset known_events;
  let comp, _, _ = components g (adjacency g) in
  let all = 1 :: List.map (fun (t, _) -> int_of_pos t) included in
  List.map pos (List.stable_sort (fun a b -> compare comp.(nodes.(b)) comp.(nodes.(a))) all)

let accepts_witness h level w =
  let included = included h (choice_of w) in
  let n = List.length h.txns + 2 in
  let w =
    if level.has_order then { w with w_total = total_of (index_of h w (judges_reads level) included) n level included }
    else w in
  let idx = index_of h w (judges_reads level) included in
  let sessions = Hashtbl.create 16 in
  List.iter (fun (t, x) ->
    let s = int_of_pos x.session in
    let others = match Hashtbl.find_opt sessions s with Some l -> l | None -> [] in
    Hashtbl.replace sessions s (t :: others)) included;
  let by_session = Hashtbl.fold (fun _ l all -> List.rev l :: all) sessions [[pos 1]] in
  let alone = [pos 1] :: List.map (fun (t, _) -> [t]) included in
  let any = List.exists (function Irreflexive e | InOrder e | Acyclic e | Empty e -> of_sessions e) level.checks in
  let tried chains =
    check_witness h level w { closure = closure_ idx n; ranking = ranking_ idx n; chains } in
  (* A later transaction of a session is no reason to refuse, so each is tried alone too. *)
  let few = n <= 2000 in
  if not any then tried alone
  else tried by_session || (if few then tried alone else raise (Gave_up "too many transactions to try each alone"))

let () =
  let say code message = print_endline message; exit code in
  try
    expect "isolang-kernel"; expect "2";
    let h = history () in
    let level = level () in
    if echoes then (echo h level; exit 0);
    let accepted, verdict = match word () with
      | "witness" -> let w = witness () in ends (); accepts_witness h level w, "valid"
      | "refutation" -> let r = refutation () in ends (); check_refutation h level r, "invalid"
      | w -> malformed ("no proof: " ^ w) in
    if accepted then say 0 ("accepted " ^ verdict) else say 1 ("refused " ^ verdict)
  with
  | Malformed message ->
    let line = ref 1 in
    String.iteri (fun i c -> if i < !at && c = '\n' then incr line) (Lazy.force text);
    say 2 (Printf.sprintf "malformed: line %d: %s" !line message)
  | Sys_error message -> say 2 ("malformed: " ^ message)
  | Gave_up reason -> say 3 ("gave up: " ^ reason)
  | Out_of_memory -> say 3 "gave up: memory"
  | Stack_overflow -> say 3 "gave up: stack"
